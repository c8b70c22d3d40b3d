"""Cgroups of pods and QoS tiers, which the kubelet owns; container cgroups belong to the runtime."""
