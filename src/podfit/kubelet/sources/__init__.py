"""What containers and volumes are given: ConfigMaps and Secrets (`lookup`), fields of the pod (`downward`), and the
environment that is made of both.
"""
