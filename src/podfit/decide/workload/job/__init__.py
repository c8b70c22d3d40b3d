"""What a job does about its pods, and what it says of them.

evaluate  jobs and pods as they are: what counts, whether it is over, which pods to make and to end
track     the status: pods are noted by UID, freed of their finalizer, and only then counted, so that none counts twice
policies, success    which failures count, and when enough has succeeded
indexes, backoff     completion indexes, and pauses between failures
"""
