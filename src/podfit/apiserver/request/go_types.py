"""Go names of string types, by struct and member, which decoder messages contain."""

_OF_CORE = """
PodSpec.restartPolicy=RestartPolicy PodSpec.dnsPolicy=DNSPolicy PodSpec.preemptionPolicy=PreemptionPolicy
PodOS.name=OSName Container.imagePullPolicy=PullPolicy
Container.terminationMessagePolicy=TerminationMessagePolicy Container.restartPolicy=ContainerRestartPolicy
EphemeralContainer.imagePullPolicy=PullPolicy EphemeralContainer.terminationMessagePolicy=TerminationMessagePolicy
ContainerResizePolicy.resourceName=ResourceName ContainerResizePolicy.restartPolicy=ResourceResizeRestartPolicy
ContainerPort.protocol=Protocol VolumeMount.mountPropagation=MountPropagationMode
VolumeMount.recursiveReadOnly=RecursiveReadOnlyMode HTTPGetAction.scheme=URIScheme Lifecycle.stopSignal=Signal
SecurityContext.procMount=ProcMountType Capabilities.add=Capability Capabilities.drop=Capability
SeccompProfile.type=SeccompProfileType AppArmorProfile.type=AppArmorProfileType
PodSecurityContext.fsGroupChangePolicy=PodFSGroupChangePolicy
PodSecurityContext.supplementalGroupsPolicy=SupplementalGroupsPolicy
PodSecurityContext.seLinuxChangePolicy=PodSELinuxChangePolicy
Toleration.operator=TolerationOperator Toleration.effect=TaintEffect Taint.effect=TaintEffect
NodeSelectorRequirement.operator=NodeSelectorOperator
TopologySpreadConstraint.whenUnsatisfiable=UnsatisfiableConstraintAction
TopologySpreadConstraint.nodeAffinityPolicy=NodeInclusionPolicy
TopologySpreadConstraint.nodeTaintsPolicy=NodeInclusionPolicy
EmptyDirVolumeSource.medium=StorageMedium HostPathVolumeSource.type=HostPathType ImageVolumeSource.pullPolicy=PullPolicy
AzureDiskVolumeSource.kind=AzureDataDiskKind AzureDiskVolumeSource.cachingMode=AzureDataDiskCachingMode
PodStatus.phase=PodPhase PodStatus.qosClass=PodQOSClass PodCondition.type=PodConditionType
PodCondition.status=ConditionStatus ServicePort.protocol=Protocol ServiceSpec.type=ServiceType
ServiceSpec.sessionAffinity=ServiceAffinity ServiceSpec.externalTrafficPolicy=ServiceExternalTrafficPolicy
ServiceSpec.internalTrafficPolicy=ServiceInternalTrafficPolicy ServiceSpec.ipFamilyPolicy=IPFamilyPolicy
ServiceSpec.ipFamilies=IPFamily EndpointPort.protocol=Protocol Secret.type=SecretType
PersistentVolumeClaimSpec.accessModes=PersistentVolumeAccessMode
PersistentVolumeClaimSpec.volumeMode=PersistentVolumeMode
PersistentVolumeSpec.accessModes=PersistentVolumeAccessMode PersistentVolumeSpec.volumeMode=PersistentVolumeMode
PersistentVolumeSpec.persistentVolumeReclaimPolicy=PersistentVolumeReclaimPolicy
PersistentVolumeStatus.phase=PersistentVolumePhase PersistentVolumeClaimStatus.phase=PersistentVolumeClaimPhase
NamespaceSpec.finalizers=FinalizerName NamespaceStatus.phase=NamespacePhase LimitRangeItem.type=LimitType
ResourceQuotaSpec.scopes=ResourceQuotaScope ScopedResourceSelectorRequirement.scopeName=ResourceQuotaScope
ScopedResourceSelectorRequirement.operator=ScopeSelectorOperator NodeAddress.type=NodeAddressType
NodeCondition.type=NodeConditionType NodeCondition.status=ConditionStatus
"""
_OF_OTHERS = """
LabelSelectorRequirement.operator=LabelSelectorOperator DeploymentStrategy.type=DeploymentStrategyType
DaemonSetUpdateStrategy.type=DaemonSetUpdateStrategyType StatefulSetUpdateStrategy.type=StatefulSetUpdateStrategyType
StatefulSetSpec.podManagementPolicy=PodManagementPolicyType CronJobSpec.concurrencyPolicy=ConcurrencyPolicy
JobSpec.completionMode=CompletionMode JobSpec.podReplacementPolicy=PodReplacementPolicy
PodFailurePolicyRule.action=PodFailurePolicyAction PriorityClass.preemptionPolicy=PreemptionPolicy
NetworkPolicySpec.policyTypes=PolicyType NetworkPolicyPort.protocol=Protocol HTTPIngressPath.pathType=PathType
EndpointSlice.addressType=AddressType StorageClass.reclaimPolicy=PersistentVolumeReclaimPolicy
StorageClass.volumeBindingMode=VolumeBindingMode CSIDriverSpec.fsGroupPolicy=FSGroupPolicy
CSIDriverSpec.volumeLifecycleModes=VolumeLifecycleMode ValidatingWebhook.failurePolicy=FailurePolicyType
ValidatingWebhook.matchPolicy=MatchPolicyType ValidatingWebhook.sideEffects=SideEffectClass
MutatingWebhook.failurePolicy=FailurePolicyType MutatingWebhook.matchPolicy=MatchPolicyType
MutatingWebhook.sideEffects=SideEffectClass MutatingWebhook.reinvocationPolicy=ReinvocationPolicyType
RuleWithOperations.operations=OperationType RuleWithOperations.scope=ScopeType
PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy=UnhealthyPodEvictionPolicyType
CustomResourceDefinitionSpec.scope=ResourceScope CustomResourceConversion.strategy=ConversionStrategyType
CertificateSigningRequestSpec.usages=KeyUsage
"""
_OF_METRICS = """
MetricSpec.type=MetricSourceType MetricTarget.type=MetricTargetType HPAScalingPolicy.type=HPAScalingPolicyType
HPAScalingRules.selectPolicy=ScalingPolicySelect ContainerResourceMetricSource.name=ResourceName
ResourceMetricSource.name=ResourceName
"""


def _named(text: str, package: str) -> dict[str, str]:
    pairs = (entry.partition("=")[::2] for entry in text.split())
    return {member: f"{package}.{name}" for member, name in pairs}


NAMED = {
    **_named(_OF_CORE, "v1"),
    **_named(_OF_OTHERS, "v1"),
    **_named(_OF_METRICS, "v2"),
    "ObjectMeta.uid": "types.UID",
    "OwnerReference.uid": "types.UID",
    "ObjectReference.uid": "types.UID",
    "Preconditions.uid": "types.UID",
}
