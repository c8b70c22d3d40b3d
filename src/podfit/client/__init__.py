"""How components reach the API.

transport  HTTPS, or a call in the process; `rest` typed requests on it; `informer` a watched collection
workqueue, events, election, certificates, kubeconfig
"""
