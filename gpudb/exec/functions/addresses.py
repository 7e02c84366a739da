"""Functions of inet and cidr: parts of an address, networks within networks."""

from __future__ import annotations

from gpudb import sqltype
from gpudb.catalog.types.network import Interface, interface
from gpudb.exec.functions.rowwise import rowwise


def _shown(value: Interface, *, is_cidr: bool = False) -> str:
    is_full = value.network.prefixlen == value.max_prefixlen
    return str(value.ip) if is_full and not is_cidr else str(value)


rowwise("network_host", examples=(("host('192.168.1.5/24'::inet)", "192.168.1.5"),))(
    lambda text: str(interface(text).ip)
)
rowwise("network_show", result=sqltype.TEXT)(lambda text: str(interface(text)))
rowwise("network_masklen", examples=(("masklen('192.168.1.5/24'::inet)", "24"),))(
    lambda text: interface(text).network.prefixlen
)
rowwise("network_family", examples=(("family('::1'::inet)", "6"),))(
    lambda text: interface(text).version
)
rowwise("network_network", examples=(("network('192.168.1.5/24'::inet)", "192.168.1.0/24"),))(
    lambda text: str(interface(text).network)
)
rowwise("inet_to_cidr")(lambda text: str(interface(text).network))
rowwise("network_netmask", examples=(("netmask('192.168.1.5/24'::inet)", "255.255.255.0"),))(
    lambda text: str(interface(text).network.netmask)
)
rowwise("network_hostmask")(lambda text: str(interface(text).network.hostmask))
rowwise("inet_same_family")(lambda a, b: interface(a).version == interface(b).version)


@rowwise("network_broadcast", examples=(("broadcast('192.168.1.5/24'::inet)",
                                         "192.168.1.255/24"),))
def broadcast(text: str) -> str:
    network = interface(text).network
    last = interface(f"{network.broadcast_address}/{network.prefixlen}")
    return _shown(last)


def _within(inner: str, outer: str, *, allows_equal: bool) -> bool:
    one, two = interface(inner).network, interface(outer).network
    if one.version != two.version:
        return False
    shorter = two.prefixlen <= one.prefixlen if allows_equal else two.prefixlen < one.prefixlen
    first = int(one.network_address) >> (one.max_prefixlen - two.prefixlen)
    return shorter and first == int(two.network_address) >> (two.max_prefixlen - two.prefixlen)


rowwise("network_sub")(lambda a, b: _within(a, b, allows_equal=False))
rowwise("network_subeq")(lambda a, b: _within(a, b, allows_equal=True))
rowwise("network_sup")(lambda a, b: _within(b, a, allows_equal=False))
rowwise("network_supeq")(lambda a, b: _within(b, a, allows_equal=True))
rowwise("network_overlap")(
    lambda a, b: _within(a, b, allows_equal=True) or _within(b, a, allows_equal=True)
)
