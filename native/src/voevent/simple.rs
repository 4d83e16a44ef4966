//! Simple types, and URIs (RFC 3986): whether a value is of one; `None` where only a complete
//! validator can judge.

use super::characters::{is_name, is_name_start};
use super::tables::Simple;

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

impl Simple {
    /// Whether any text will do.
    pub fn is_free(&self) -> bool {
        matches!(self, Simple::String | Simple::Token)
    }

    pub fn accepts(&self, value: &str) -> Option<bool> {
        match self {
            Simple::String | Simple::Token => Some(true),
            Simple::Choice { values, tokens } => is_one_of(value, values, *tokens),
            Simple::Float { low, high } => is_float(value, *low, *high),
            Simple::DateTime => is_date_time(value),
            Simple::AnyUri => is_any_uri(value),
            Simple::Id => is_id(value),
        }
    }
}

/// Whether the *value* is the one that is asked for.
pub fn is_fixed(value: &str, fixed: &str) -> Option<bool> {
    let asked = value == fixed;
    if !asked && value.contains(SPACE) { None } else { Some(asked) }
}

fn is_one_of(value: &str, values: &[String], tokens: bool) -> Option<bool> {
    let found = values.iter().any(|one| one == value);
    if !found && tokens && value.contains(SPACE) { None } else { Some(found) }
}

fn is_float(value: &str, low: Option<f64>, high: Option<f64>) -> Option<bool> {
    let value = value.trim_matches(SPACE);
    if low.is_some() || high.is_some() {
        return is_between(value, low, high);
    }
    if matches!(value, "INF" | "-INF" | "NaN") {
        return Some(true);
    }
    let (mantissa, exponent) = match value.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (value, "0"),
    };
    if exponent.is_empty() || exponent.ends_with(['+', '-']) {
        return None;
    }
    let (whole, fraction) = unsigned(mantissa).split_once('.').unwrap_or((unsigned(mantissa), ""));
    let empty = whole.is_empty() && fraction.is_empty();
    Some(!empty && is_digits(whole) && is_digits(fraction) && is_digits(unsigned(exponent)))
}

/// Whether a number lies within bounds that it is not near to.
fn is_between(value: &str, low: Option<f64>, high: Option<f64>) -> Option<bool> {
    if is_float(value, None, None) != Some(true) {
        return is_float(value, None, None);
    }
    let number: f64 = value.parse().ok()?;
    let inside = low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high);
    let far = |bound: Option<f64>| bound.is_none_or(|bound| (number - bound).abs() > 1e-3);
    if inside { Some(true) } else { (far(low) && far(high)).then_some(false) }
}

fn unsigned(number: &str) -> &str {
    number.strip_prefix(['+', '-']).unwrap_or(number)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Years of four digits; space around it, other years and the hour 24 are left to others.
fn is_date_time(value: &str) -> Option<bool> {
    let usual = |byte: u8| byte.is_ascii_digit() || b"-+:.TZ".contains(&byte);
    if value.starts_with('-') || value.find('-') != Some(4) || value.get(11..13) == Some("24") {
        return if value.bytes().any(|byte| byte.is_ascii_digit()) { None } else { Some(false) };
    }
    let date = || Some((value.get(..10)?, value.get(11..19)?, value.get(19..)?));
    let Some((date, time, rest)) = date() else { return Some(false) };
    let whole = value.bytes().all(usual) && value.as_bytes().get(10) == Some(&b'T');
    Some(whole && is_date(date) && is_time(time) && is_zone(without_fraction(rest)))
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else { return false };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    year > 0 && (1..=12).contains(&month) && (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    matches!(numbers(text, ':', [2, 2, 2]), Some([0..=23, 0..=59, 0..=59]))
}

/// What follows the fraction of a second; the whole, which is no zone, where that has no digits.
fn without_fraction(text: &str) -> &str {
    let Some(fraction) = text.strip_prefix('.') else { return text };
    let rest = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
    if rest.len() < fraction.len() { rest } else { text }
}

fn is_zone(text: &str) -> bool {
    let zone = text.strip_prefix(['+', '-']).and_then(|zone| numbers(zone, ':', [2, 2]));
    matches!(text, "" | "Z") || matches!(zone, Some([0..=13, 0..=59] | [14, 0]))
}

/// The numbers of so many digits each that *text* consists of.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits && is_digits(part))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

fn is_id(value: &str) -> Option<bool> {
    if !value.is_ascii() || value.contains(SPACE) || value.contains(':') {
        return None;
    }
    let first = value.bytes().next();
    Some(first.is_some_and(is_name_start) && value.bytes().all(is_name))
}

/// Whether *text* is an absolute URI of usual characters.
pub fn is_plain(text: &[u8]) -> bool {
    scheme(text).is_some() && text.iter().all(|byte| judge_byte(*byte)) && judge(text) == Some(true)
}

/// Whether *text* is a value of `xs:anyURI`: characters that URIs lack are taken for some that they
/// have.
pub fn is_any_uri(text: &str) -> Option<bool> {
    let usual = |byte: u8| if judge_byte(byte) { byte } else { b'_' };
    match text.bytes().all(judge_byte) {
        true => judge(text.as_bytes()),
        false => judge(&text.bytes().map(usual).collect::<Vec<u8>>()),
    }
}

fn judge_byte(byte: u8) -> bool {
    byte > b' '
        && byte < 0x7f
        && !matches!(byte, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`')
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
    let found =
        uri.get(end) == Some(&b':') && scheme.first()?.is_ascii_alphabetic() && scheme.iter().all(usual);
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
