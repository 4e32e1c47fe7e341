//! Which addresses may be dialled for an endpoint.

use crate::model::endpoint::Endpoint;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `address`, which `endpoint` was resolved to, may be dialled.
///
/// A public name leads to public addresses only. An address that stands on the list itself may be
/// dialled as it is. A name that is marked local may lead into private networks, but never to a
/// link-local address, where cloud machines keep their credentials.
pub(super) fn may_dial(endpoint: &Endpoint, address: IpAddr) -> bool {
    if !endpoint.is_local() {
        return is_public(address);
    }
    if let Ok(literal) = endpoint.host().parse::<IpAddr>() {
        return literal == address;
    }
    if endpoint.host() == "localhost" {
        return address.is_loopback();
    }
    is_public(address) || is_private(address)
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || a >= 224
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        // Shared address space (RFC 6598), protocol assignments, benchmarks (RFC 2544).
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
        // A cloud's machine agent answers here, in the middle of public space.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        is_public_v4(Ipv4Addr::from_bits(
            (u32::from(high) << 16) | u32::from(low),
        ))
    };
    match (parts[0], parts[1]) {
        // NAT64 (RFC 6052) and 6to4 lead to the IPv4 address within.
        (0x64, 0xff9b) if parts[2..6] == [0; 4] => embedded(parts[6], parts[7]),
        (0x2002, high) => embedded(high, parts[2]),
        // Teredo, ORCHID, documentation: nobody's server.
        (0x2001, 0..0x200 | 0xdb8) | (0x3fff, _) => false,
        (first, _) => first & 0xe000 == 0x2000,
    }
}

/// Loopback and private networks. IPv4 addresses in IPv6 clothes are neither.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            let shared = a == 100 && (64..128).contains(&b);
            // A cloud's metadata service answers inside the shared space.
            let metadata = address == Ipv4Addr::new(100, 100, 100, 200);
            (address.is_private() || address.is_loopback() || shared) && !metadata
        }
        IpAddr::V6(address) => {
            let metadata = address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254];
            (address.is_loopback() || address.segments()[0] & 0xfe00 == 0xfc00) && !metadata
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dial(endpoint: &str, address: &str) -> bool {
        may_dial(&endpoint.parse().unwrap(), address.parse().unwrap())
    }

    #[test]
    fn a_public_name_leads_to_public_addresses_only() {
        for good in [
            "1.1.1.1",
            "93.184.215.14",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert!(dial("api.example.org:443", good), "{good}");
        }
        for bad in [
            "127.0.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "168.63.129.16",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "::127.0.0.1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(!dial("api.example.org:443", bad), "{bad}");
        }
    }

    #[test]
    fn local_endpoints_lead_where_they_say() {
        assert!(dial("127.0.0.1:80", "127.0.0.1") && !dial("127.0.0.1:80", "127.0.0.2"));
        assert!(dial("localhost:80", "::1") && !dial("localhost:80", "10.0.0.1"));
        assert!(dial("local:models.example.org:80", "10.0.0.1"));
        assert!(dial("local:models.example.org:80", "127.0.0.1"));
        for bad in [
            "169.254.169.254",
            "fe80::1",
            "::ffff:10.0.0.1",
            "0.0.0.0",
            "100.100.100.200",
            "fd00:ec2::254",
        ] {
            assert!(!dial("local:models.example.org:80", bad), "{bad}");
        }
    }
}
