"""Actions of `podfit resize`: a plan of `answers`, carried out on a cluster.

resize_pods        the pods of a plan, one after the other, each watched if that is asked
canary             some of them first, watched, before the others follow or the first go back
change_template    the sizes in a workload's own template
in_place           both in one call, for operators written in Python
"""
