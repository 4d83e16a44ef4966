//! Which characters may be where.

use super::scan::{Read, malformed};

#[inline]
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[inline]
pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Of ASCII, and without the colon, which parts names.
#[inline]
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Whether XML has this character.
pub fn is_character(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        other => other >= ' ',
    }
}

/// Refuse a *document* with bytes that are not UTF-8, or characters that XML does not have.
pub fn check_characters(document: &[u8]) -> Read<()> {
    let text = std::str::from_utf8(document)?;
    if !document.iter().fold(false, |found, byte| found | needs_a_look(*byte)) {
        return Ok(()); // as nearly always
    }
    match text.char_indices().find(|(_, character)| !is_character(*character)) {
        Some((at, _)) => malformed(at, "a character that XML does not have"),
        None => Ok(()),
    }
}

/// Written so that the compiler makes it a few instructions for many bytes.
#[inline]
fn needs_a_look(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t' && byte != b'\n' && byte != b'\r') || byte == 0xef
}
