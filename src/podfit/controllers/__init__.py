"""The control loops, one file and one reconcile each. They see and change the cluster through the API alone."""
