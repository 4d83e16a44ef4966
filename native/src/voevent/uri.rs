//! URIs (RFC 3986), as far as events use them; `None` where only a complete parser can judge.

/// Whether *text* is an absolute URI of usual characters.
pub fn is_plain(text: &[u8]) -> bool {
    scheme(text).is_some() && text.iter().all(|byte| judge_byte(*byte)) && judge(text) == Some(true)
}

/// Whether *text* is a value of `xs:anyURI`: characters that URIs lack are taken for some that they have.
pub fn is_any_uri(text: &str) -> Option<bool> {
    let usual = |byte: u8| if judge_byte(byte) { byte } else { b'_' };
    match text.bytes().all(judge_byte) {
        true => judge(text.as_bytes()),
        false => judge(&text.bytes().map(usual).collect::<Vec<u8>>()),
    }
}

fn judge_byte(byte: u8) -> bool {
    byte > b' ' && byte < 0x7f && !matches!(byte, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`')
}

fn judge(uri: &[u8]) -> Option<bool> {
    if !escapes_are_complete(uri) || uri.iter().filter(|byte| **byte == b'#').count() > 1 {
        return Some(false);
    }
    let uri = uri.split(|byte| *byte == b'#').next()?; // anything may be behind it
    let (uri, query) = match uri.iter().position(|byte| *byte == b'?') {
        Some(mark) => (uri.get(..mark)?, uri.get(mark..)?),
        None => (uri, &[][..]),
    };
    let rest = scheme(uri).unwrap_or(uri);
    let relative = rest.len() == uri.len();
    let path = match rest.strip_prefix(b"//") {
        Some(behind) => path_behind_authority(behind)?,
        None if relative && rest.contains(&b':') => return None,
        None => rest,
    };
    let usual = !path.iter().chain(query).any(|byte| matches!(byte, b'[' | b']'));
    usual.then_some(true)
}

/// What follows the scheme and its colon, if there is one.
fn scheme(uri: &[u8]) -> Option<&[u8]> {
    let end = uri.iter().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'#'))?;
    let scheme = uri.get(..end)?;
    let usual = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let found = uri.get(end) == Some(&b':') && scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(usual);
    if found { uri.get(end + 1..) } else { None }
}

/// The path behind a host and perhaps a port; None where the authority is more than these.
fn path_behind_authority(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
    let mut parts = text.get(..end)?.split(|byte| *byte == b':');
    let host = parts.next()?;
    let port = parts.next();
    let digits = |port: &[u8]| (1..=5).contains(&port.len()) && port.iter().all(u8::is_ascii_digit);
    let usual = !host.iter().any(|byte| matches!(byte, b'@' | b'[' | b']' | b'%'));
    if usual && port.is_none_or(digits) && parts.next().is_none() { text.get(end..) } else { None }
}

fn escapes_are_complete(uri: &[u8]) -> bool {
    let mut marks = uri.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    marks.all(|(at, _)| matches!(uri.get(at + 1..at + 3), Some(two) if two.iter().all(u8::is_ascii_hexdigit)))
}
