//! The place that a registry's URL names.

use super::PUBLIC;
use crate::model::endpoint::Endpoint;
use std::path::PathBuf;

/// `host:port` of an `http` or `https` URL, with Cargo's `sparse+` and `registry+` before it.
/// `None` for anything else. Credentials in it are left out.
pub(super) fn endpoint(url: &str) -> Option<Endpoint> {
    let url = url.trim();
    let url = url
        .strip_prefix("sparse+")
        .or(url.strip_prefix("registry+"))
        .unwrap_or(url);
    let (scheme, rest) = url.split_once("://")?;
    let default = if scheme.eq_ignore_ascii_case("https") {
        443
    } else if scheme.eq_ignore_ascii_case("http") {
        80
    } else {
        return None;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let place = &rest[..end];
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let bracket = place.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match place[bracket..].rfind(':') {
        Some(colon) => {
            let (host, port) = place.split_at(bracket + colon);
            (host, port[1..].parse().ok()?)
        }
        None => (place, default),
    };
    let endpoint = Endpoint::new(host, port).ok()?;
    let public = PUBLIC.contains(&endpoint.host());
    Some(if public {
        endpoint
    } else {
        endpoint.as_local()
    })
}

/// A local folder or file: an absolute path, or a `file:` URL of one.
pub(super) fn local_path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    let path = PathBuf::from(text.strip_prefix("file://").unwrap_or(text));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_found_and_credentials_are_left_out() {
        for (url, place, local) in [
            ("https://pypi.org/simple", "pypi.org:443", false),
            (
                "https://user:p%40ss@mirror.example.org/simple/",
                "mirror.example.org:443",
                true,
            ),
            ("http://127.0.0.1:3141/root", "127.0.0.1:3141", true),
            (
                "sparse+https://cargo.example.org/index/",
                "cargo.example.org:443",
                true,
            ),
            ("https://[::1]:8443", "[::1]:8443", true),
        ] {
            let found = endpoint(url).unwrap();
            assert_eq!(
                (found.to_string().as_str(), found.is_local()),
                (place, local)
            );
        }
        for bad in [
            "",
            "mirror.example.org",
            "ssh://git@example.org/x",
            "https://",
            "file:///x",
        ] {
            assert!(endpoint(bad).is_none(), "{bad}");
        }
    }
}
