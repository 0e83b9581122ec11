//! The token of the console.

use std::hint::black_box;

use hyper::header::{AUTHORIZATION, HeaderMap};

/// Returns whether a request shows this token.
pub(super) fn is_shown(headers: &HeaderMap, token: &str) -> bool {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else {
        return false;
    };
    let shown = shown.as_bytes();
    let Some((scheme, shown)) = shown.split_at_checked("Bearer ".len()) else {
        return false;
    };
    let is_right = are_same(shown, token.as_bytes());
    scheme.eq_ignore_ascii_case(b"Bearer ") && is_right && !token.is_empty()
}

/// Compares in a time that depends on the length of what was shown alone.
fn are_same(shown: &[u8], token: &[u8]) -> bool {
    let mut differs = usize::from(shown.len() != token.len());
    let expected = token.iter().cycle().chain(std::iter::repeat(&0));
    for (one, other) in shown.iter().zip(expected) {
        differs |= usize::from(black_box(one ^ other));
    }
    black_box(differs) == 0
}

/// Returns whether a request says nothing of the site that has sent it, as a browser does.
pub(super) fn names_no_site(headers: &HeaderMap) -> bool {
    !headers.contains_key("sec-fetch-site")
}

#[cfg(test)]
mod tests {
    use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use super::is_shown;

    #[test]
    fn only_the_token_itself_is_right() {
        let shows = |fields: &[&str], token: &str| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(AUTHORIZATION, HeaderValue::from_str(field).unwrap());
            }
            is_shown(&headers, token)
        };
        assert!(shows(&["Bearer secret"], "secret"));
        assert!(shows(&["bearer secret"], "secret"));
        for wrong in [
            &[][..],
            &["secret"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer secre"],
            &["Bearer secrets"],
            &["Bearer secretsecret"],
            &["Bearer Secret"],
            &["Basic secret"],
            &["Bearer secret", "Bearer secret"],
        ] {
            assert!(!shows(wrong, "secret"), "{wrong:?}");
        }
        assert!(!shows(&["Bearer "], "") && !shows(&["Bearer a"], ""));
    }
}
