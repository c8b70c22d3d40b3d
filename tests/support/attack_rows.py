"""The lines of docs/bounds.md, and which of them the payloads of the attack suite attack."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "bounds.md"
OF_PAYLOADS = {
    "request target": "request target",
    "query parameters": "query parameters",
    "label selector": "requirements and values",
    "field selector": "requirements and values",
    "numbers in a query": "numbers in a query",
    "digits of a number in a query": "numbers in a query",
    "continue token": "numbers in a query",
    "headers": "headers",
    "Accept": "headers",
    "warnings": "warnings of an answer",
    "values": "values (objects",
    "values of a list": "values (objects",
    "body": "body",
    "levels": "levels of a document",
    "managed fields": "values of a stored object",
    "finalizers": "values (objects",
    "names": "regular expressions",
    "labels": "regular expressions",
    "quantities": "regular expressions",
    "expansion": "environment, command and args",
    "definition": "text of an expression",
    "PEM": "PEM of a certificate request",
    "rules": "values (objects",
    "YAML keys": "YAML",
    "YAML aliases": "YAML",
    "YAML numbers": "YAML",
    "protobuf": "protobuf",
    "protobuf fields": "protobuf",
    "values of a patch": "values (objects",
    "levels of a patch": "levels of a document",
    "operations": "operations of a JSON patch",
    "copies": "what the copies",
    "insertions": "items that insertions",
    "parts of a pointer": "parts of a JSON pointer",
    "merged lists": "merging lists",
    "taken out of lists": "merging lists",
    "order of lists": "merging lists",
    "applied keys": "values (objects",
    "applied YAML": "YAML",
    "applied aliases": "YAML",
}
"""By the name of a payload's bound: how the line begins."""


ON_A_NODE = {
    "a container's log": "kubelet/test_log_rotation.py::test_a_large_log_is_set_aside_and_few_are_kept",
    "giving a claimed volume to a group": "kubelet/volumes/test_groups.py::test_what_is_too_deep_stays_as_it_is",
    "measuring what a pod has on the disk": (
        "kubelet/disk/test_usage.py::test_deep_directories_are_counted_as_far_as_there_are_descriptors"
    ),
    "what a probe or hook writes": "net/test_plain_get.py::test_no_more_of_a_body_is_read_than_is_kept",
    "a connection that has changed": (
        "e2e/test_streams.py::test_a_client_that_never_reads_and_one_that_hangs_leave_nothing"
    ),
}
"""What a cluster with a simulated node does not have: the test that attacks it instead."""

BY_ITSELF = {
    "burst ceilings of a pod": "apiserver/test_burst_ceilings.py::test_what_says_nothing_is_refused",
    "limits that the node moves": (
        "decide/autoscaling/test_burst.py::test_whatever_is_used_limits_stay_inside_and_changes_within_the_budget"
    ),
    "a node's summary that the updater polls": "vpa/test_vpa_bursts.py::test_what_is_no_summary_is_refused",
    "endpoints to which a port of a Service leads": (
        "decide/services/test_backends.py::test_of_ten_thousand_endpoints_the_first_five_thousand_answer"
    ),
    "the history of usage": "vpa/test_vpa_own_history.py::test_a_journal_has_a_bound",
    "slices of a VPA's pods": (
        "decide/autoscaling/test_vpa_own_aggregates.py::test_vpa_slices_of_hostile_sizes_are_bounded"
    ),
    "what initial resources go by": "decide/autoscaling/test_vpa_initial.py::test_what_was_never_saved_is_refused",
    "a history that `podfit recommend": (
        "answers/test_recommend.py::test_more_of_a_history_than_is_read_whole_is_refused"
    ),
    "a question of `podfit history": "vpa/test_vpa_history_queries.py::test_a_question_and_an_answer_have_bounds",
    "what a provider of nodes tells": "autoscaler/test_external_provider.py::test_answers_are_bounded",
    "files of `--node-groups`": "autoscaler/test_kwok_groups.py::test_more_groups_than_there_may_be_are_refused",
    "CapacityBuffers, and what one": (
        "decide/capacity/test_capacity_buffers.py::test_capacity_a_buffer_is_bounded_and_needs_what_it_refers_to"
    ),
    "nodes with pods that are judged": (
        "decide/capacity/test_capacity_scale_down.py::test_capacity_judges_so_many_nodes_with_pods_in_one_look"
    ),
    "Nodes that are played": "process/test_kwok_nodes.py::test_what_is_asked_for_too_much_is_refused_and_said",
    "who asks for names": "dns/test_server.py::test_who_is_not_of_the_networks_is_not_answered_by_udp_nor_tcp",
    "a question of DNS": "dns/test_wire.py::test_what_is_no_question",
    "an answer by UDP": "dns/test_server.py::test_no_answer_is_much_longer_than_its_question_unless_it_was_asked_for",
    "questions that wait for resolvers": (
        "dns/test_server.py::test_questions_for_resolvers_are_bounded_for_one_client_and_for_all"
    ),
    "answers of resolvers that are kept": (
        "dns/test_server.py::test_a_flood_of_names_keeps_the_memory_bounded_and_others_answered"
    ),
    "an answer of a resolver": "dns/test_wire.py::test_what_is_no_message_is_unreadable",
    "packets of the cluster's own names": (
        "dns/test_server.py::test_the_packets_that_are_kept_are_bounded_by_their_size"
    ),
    "connections that ask for names": (
        "dns/test_server.py::test_connections_of_one_client_are_bounded_and_idle_ones_end"
    ),
    "SRV records of one EndpointSlice": (
        "decide/dns/test_specification.py::test_a_slice_of_many_endpoints_and_ports_has_a_bounded_number_of_names"
    ),
    "CNAMEs and SRV targets": "decide/dns/test_zone.py::test_a_chain_of_external_names_is_bounded",
    "requests through `pods/proxy`": "apiserver/test_proxy.py::test_pods_that_do_not_answer_take_few_seats",
    "answers through them": "apiserver/test_proxy.py::test_who_leaves_ends_the_connection",
    "a path of a printer column": "test_doubling.py::test_the_most_that_a_request_brings",
    "selectors of an aggregated": "test_doubling.py::test_the_most_that_a_request_brings",
    "a record of the store": "store/test_damaged_records.py::test_bytes_that_are_others",
    "body of who is nobody": "net/test_memory_budget.py::test_a_large_body_is_read_from_somebody",
    "request line": "net/test_memory_budget.py::test_what_the_parser_forgives_is_refused",
    "bodies, heads and answers": ("e2e/test_hostile_connections.py::test_four_thousand_hostile_connections"),
    "what an answer has in the kernel": "net/test_memory_budget.py::test_answers_that_nobody_reads_are_bounded",
    "what a controller decides": "controllers/test_many_objects.py::test_a_service_of_many_pods",
    "addresses in one Endpoints object": "controllers/test_many_objects.py::test_a_service_of_many_pods",
    "selectors of workloads": (
        "controllers/test_many_objects.py::test_selectors_of_many_requirements_cost_a_pod_nothing"
    ),
    "work of a controller": "client/test_workqueue.py::test_work_that_waits_for_nothing_keeps_nobody_waiting",
    "owners above one another": "test_owner_chains.py::test_no_walk_over_owners_takes_a_turn_too_long",
    "pods of a StatefulSet": ("decide/workload/test_stateful.py::test_two_billion_replicas_are_made_some_at_once"),
    "specs of pods that are known by their bytes": "apiserver/test_repeated_specs.py::test_what_is_known_is_bounded",
    "pods that are asked whether a change of a claim": (
        "scheduler/test_queue.py::test_a_claim_is_asked_of_those_alone_that_wait_for_it"
    ),
    "rules of a pod about nodes": "scheduler/test_many_rules.py::test_an_attempt_of_many_rules_holds_nobody_up",
    "requests that a controller": "client/test_transport.py::test_requests_side_by_side_do_not_begin_in_one_turn",
    "pods of a ReplicaSet": (
        "controllers/test_workloads.py::test_pods_that_their_node_rejects_are_made_ever_more_slowly"
    ),
    "a CronJob's schedule": (
        "decide/workload/test_cron.py::test_far_times_and_long_schedules_cost_little_and_raise_nothing"
    ),
    "times that a CronJob's": (
        "decide/workload/test_cron.py::test_far_times_and_long_schedules_cost_little_and_raise_nothing"
    ),
    "an answer of Prometheus": "vpa/test_vpa_hostile.py::test_what_no_server_answers_is_refused",
    "indexes that a Job's": "decide/test_job_indexes.py::test_a_few_bytes_do_not_name_all_numbers_of_32_bits",
    "what a kubelet tells of": "metrics/test_hostile_kubelets.py::test_no_answer_holds_the_event_loop_up",
    "a line of metrics": "metrics/test_hostile_kubelets.py::test_what_is_no_amount_is_no_reading_and_ends_no_round",
    "pods of which a kubelet tells": (
        "metrics/test_hostile_kubelets.py::test_a_kubelet_tells_nothing_of_pods_of_other_nodes_and_spoils_no_round"
    ),
    "a list of metrics": "metrics/test_many_pods.py::test_a_long_list_does_not_hold_the_event_loop_up",
}
"""What takes more objects than a quick test can make in a cluster: the test that attacks the part by itself."""


def lines() -> list[str]:
    """The first cells of the page's tables."""
    cells = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [cell for cell in cells if cell != "what"]


def named(beginning: str) -> str:
    """The one line that is it, or begins with it."""
    exact = [line for line in lines() if line == beginning]
    found = exact or [line for line in lines() if line.startswith(beginning)]
    assert len(found) == 1, f"{beginning!r} is the beginning of {found}"
    return found[0]
