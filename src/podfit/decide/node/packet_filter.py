"""What a kernel has to have for the rules of pods and Services: for each of its options rules that need it.

nft is asked whether it would take them (`nft --check`), which changes nothing.
"""

from collections.abc import Iterable, Mapping

TABLE = "podfit-check"
_FILTER = "type filter hook forward priority filter; policy accept;"
_NAT = "type nat hook prerouting priority dstnat; policy accept;"
BASE = "CONFIG_NF_TABLES_IPV4"
"""Without it none of the others can be asked for."""
NEEDS: Mapping[str, tuple[str, str]] = {
    BASE: (_FILTER, ""),
    "CONFIG_NFT_CT": (_FILTER, "ct state new drop"),
    "CONFIG_NFT_FIB_IPV4": ("type filter hook prerouting priority raw; policy accept;", "fib saddr . iif oif 0 drop"),
    "CONFIG_NFT_REJECT_IPV4": (_FILTER, "reject"),
    "CONFIG_NFT_NAT": (_NAT, "meta l4proto tcp dnat to 192.0.2.1:80"),
    "CONFIG_NFT_NUMGEN": (
        _NAT,
        "meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 192.0.2.1 . 80, 1 : 192.0.2.2 . 80 }",
    ),
    "CONFIG_NFT_MASQ": ("type nat hook postrouting priority srcnat; policy accept;", "masquerade"),
}
"""By the option's name: a chain's kind and a rule in it."""


def check_text(options: Iterable[str]) -> str:
    """A text for nft that needs these options, a chain for each."""
    chains = (f"  chain {name.lower()} {{ {NEEDS[name][0]} {NEEDS[name][1]}; }}\n" for name in options)
    return f"table ip {TABLE} {{\n{''.join(chains)}}}\n".replace("; ; }", "; }")
