//! References (`&lt;`, `&#233;`) and the values that text and attributes have.

use std::borrow::Cow;

use super::characters::is_character;
use super::scan::{Read, unsure};

/// Where the reference that begins at *at* ends.
pub fn reference_end(document: &[u8], at: usize) -> Read<usize> {
    match parse(document.get(at..).unwrap_or_default()) {
        Some((_, length)) => Ok(at + length),
        None => unsure("an entity, or an '&' by itself"),
    }
}

/// The value of *text*: references are characters, ends of lines are line feeds.
pub fn text_value(text: &[u8]) -> Cow<'_, str> {
    if text.iter().any(|byte| matches!(byte, b'&' | b'\r')) {
        expand(text, b'\n')
    } else {
        String::from_utf8_lossy(text)
    }
}

/// The value of a CDATA section: ends of lines are line feeds.
pub fn section_value(text: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(text);
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text }
}

/// The value of an attribute: references are characters, each kind of space is a space.
pub fn attribute_value(text: &[u8]) -> Cow<'_, str> {
    if text.iter().any(|byte| matches!(byte, b'&' | b'\r' | b'\n' | b'\t')) {
        expand(text, b' ')
    } else {
        String::from_utf8_lossy(text)
    }
}

/// Expand references, and write *line* for ends of lines; a tab becomes a space where they do.
fn expand(text: &[u8], line: u8) -> Cow<'_, str> {
    let mut value = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'&', _) => match parse(rest) {
                Some((character, length)) => {
                    value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest.get(length..).unwrap_or_default()
                }
                None => behind,
            },
            (b'\r', [b'\n', ..]) => behind,
            (b'\r' | b'\n', _) => keep(&mut value, line, behind),
            (b'\t', _) if line == b' ' => keep(&mut value, b' ', behind),
            _ => keep(&mut value, *first, behind),
        };
    }
    String::from_utf8_lossy(&value).into_owned().into()
}

fn keep<'a>(value: &mut Vec<u8>, byte: u8, behind: &'a [u8]) -> &'a [u8] {
    value.push(byte);
    behind
}

/// The character that the reference at the beginning of *text* means, and its length. [byte]
fn parse(text: &[u8]) -> Option<(char, usize)> {
    let end = text.iter().take(16).position(|byte| *byte == b';')?;
    let character = match text.get(1..end)? {
        b"lt" => '<',
        b"gt" => '>',
        b"amp" => '&',
        b"apos" => '\'',
        b"quot" => '"',
        [b'#', b'x', digits @ ..] => number(digits, 16)?,
        [b'#', digits @ ..] => number(digits, 10)?,
        _ => return None,
    };
    Some((character, end + 1))
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    if digits.first() == Some(&b'+') {
        return None; // which Rust would take
    }
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    char::from_u32(code).filter(|character| is_character(*character))
}
