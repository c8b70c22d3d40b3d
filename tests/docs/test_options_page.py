"""docs/options.md is what the Structs of the options say today, and has every command that takes some."""

from support.options_page import PAGE, commands, page


def test_the_page_of_options_is_current() -> None:
    assert PAGE.read_text() == page(), "write it anew: make figures"


def test_every_process_is_on_it() -> None:
    named = {name for name, _ in commands()}
    assert named >= {"up", "apiserver", "controllers", "scheduler", "kubelet", "metrics-server"}
    assert named >= {"vpa recommender", "vpa updater", "vpa admission-controller", "recommend"}
