"""The client side of the API: transports, REST client, informers, work queues, leader election.

transport  HTTPS, or a call in the process; `rest` typed requests on it; `informer` a watched collection
workqueue, events, election, certificates, kubeconfig
"""
