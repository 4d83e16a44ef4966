//! XML 1.0 in UTF-8, one token after the other, strictly.
//!
//! What is rare in events and easy to get wrong (entities, names beyond ASCII, other encodings) is
//! left to a complete parser: see `Stop::Unsure`.

use std::ops::Range;

use super::characters::{check_characters, is_name, is_name_start, is_space};
use super::references::reference_end;
use super::tree::Span;

/// What was found where reading stopped.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// It is no well-formed XML, or XML that is not accepted: the byte, and what is wrong there.
    Malformed { at: usize, why: &'static str },
    /// It may be, but uses what only a complete parser can judge.
    Unsure(&'static str),
}

pub type Read<T> = Result<T, Stop>;

pub fn malformed<T>(at: usize, why: &'static str) -> Read<T> {
    Err(Stop::Malformed { at, why })
}

pub fn unsure<T>(why: &'static str) -> Read<T> {
    Err(Stop::Unsure(why))
}

const MAX_SIZE: usize = 4 << 20;
const MAX_NAME: usize = 1000;
const MAX_ATTRIBUTES: usize = 64; // each is compared with all before it

/// A name as it is written, with its prefix, which may be empty.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub prefix: Span,
    pub local: Span,
    pub whole: Span,
}

#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    pub name: Name,
    /// What stands between the quotes.
    pub value: Span,
}

pub enum Token {
    /// A start tag; its attributes are these of `Scanner::attributes`.
    Start {
        name: Name,
        attributes: Range<usize>,
        empty: bool,
    },
    End {
        name: Span,
    },
    Text(Span),
    /// What a CDATA section holds.
    Section(Span),
    /// A comment or a processing instruction.
    Aside,
    Nothing,
}

pub struct Scanner<'a> {
    pub document: &'a [u8],
    pub at: usize,
    /// Of all elements so far.
    pub attributes: Vec<Attribute>,
}

impl<'a> Scanner<'a> {
    /// Look at *document* as a whole; what comes next is what follows its declaration.
    pub fn new(document: &'a [u8]) -> Read<Self> {
        if document.len() > MAX_SIZE {
            return unsure("a document of this size");
        }
        check_characters(document)?;
        let mut scanner = Scanner { document, at: 0, attributes: Vec::with_capacity(64) };
        scanner.skip(b"\xef\xbb\xbf");
        scanner.declaration()?;
        Ok(scanner)
    }

    pub fn next(&mut self) -> Read<Token> {
        match self.rest() {
            [] => Ok(Token::Nothing),
            [b'<', b'/', ..] => self.end_tag(),
            [b'<', b'!', b'-', b'-', ..] => self.comment(),
            [b'<', b'!', b'[', ..] => self.section(),
            [b'<', b'!', ..] => unsure("a document type or markup declaration"),
            [b'<', b'?', ..] => self.instruction(),
            [b'<', ..] => self.start_tag(),
            _ => self.text(),
        }
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.document.get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn peek(&self) -> u8 {
        self.document.get(self.at).copied().unwrap_or(0) // a NUL is nowhere else
    }

    fn skip(&mut self, wanted: &[u8]) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn expect(&mut self, wanted: &[u8], why: &'static str) -> Read<()> {
        if self.skip(wanted) { Ok(()) } else { malformed(self.at, why) }
    }

    #[inline]
    fn skip_space(&mut self) -> bool {
        let start = self.at;
        while is_space(self.peek()) {
            self.at += 1;
        }
        self.at > start
    }

    /// Go behind the next *mark*, and return what was before it.
    fn until(&mut self, mark: &[u8], why: &'static str) -> Read<Span> {
        let start = self.at;
        let mut rest = self.rest();
        while let Some(ahead) = rest.iter().position(|byte| *byte == mark[0]) {
            rest = &rest[ahead..];
            if rest.starts_with(mark) {
                let end = self.document.len() - rest.len();
                self.at = end + mark.len();
                return Ok(Span::new(start, end));
            }
            rest = &rest[1..];
        }
        malformed(start, why)
    }

    fn name(&mut self) -> Read<Name> {
        let start = self.at;
        let first = self.part()?;
        let whole_and_local = if self.skip(b":") { Some(self.part()?) } else { None };
        if self.peek() == b':' {
            return unsure("a name with two colons");
        }
        let whole = Span::new(start, self.at);
        Ok(match whole_and_local {
            Some(local) => Name { prefix: first, local, whole },
            None => Name { prefix: Span::new(start, start), local: first, whole },
        })
    }

    /// A name, or the half of one before or behind the colon.
    fn part(&mut self) -> Read<Span> {
        let start = self.at;
        match self.peek() {
            byte if is_name_start(byte) => self.at += 1,
            b':' | 0x80.. => return unsure("a name that is unusual"),
            _ => return malformed(start, "a name is expected"),
        }
        while is_name(self.peek()) {
            self.at += 1;
        }
        if self.peek() >= 0x80 || self.at - start > MAX_NAME {
            return unsure("a name that is unusual");
        }
        Ok(Span::new(start, self.at))
    }

    fn start_tag(&mut self) -> Read<Token> {
        self.at += 1;
        let name = self.name()?;
        let first = self.attributes.len();
        loop {
            let spaced = self.skip_space();
            let empty = self.peek() == b'/';
            if empty || self.peek() == b'>' {
                self.expect(if empty { b"/>" } else { b">" }, "'>' is expected")?;
                return Ok(Token::Start { name, attributes: first..self.attributes.len(), empty });
            }
            if !spaced {
                return malformed(self.at, "space is expected before an attribute");
            }
            self.attribute(first)?;
        }
    }

    fn attribute(&mut self, first: usize) -> Read<()> {
        let name = self.name()?;
        self.skip_space();
        self.expect(b"=", "'=' is expected")?;
        self.skip_space();
        let value = self.quoted()?;
        let earlier = self.attributes.get(first..).unwrap_or_default();
        let written = name.whole.of(self.document);
        if earlier.iter().any(|other| other.name.whole.of(self.document) == written) {
            return malformed(name.whole.start(), "an attribute is there twice");
        }
        if earlier.len() == MAX_ATTRIBUTES {
            return unsure("an element with so many attributes");
        }
        self.attributes.push(Attribute { name, value });
        Ok(())
    }

    fn quoted(&mut self) -> Read<Span> {
        let quote = self.peek();
        if quote != b'"' && quote != b'\'' {
            return malformed(self.at, "a quote is expected");
        }
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                byte if byte == quote => break,
                b'<' => return malformed(self.at, "'<' in the value of an attribute"),
                b'&' => self.at = reference_end(self.document, self.at)?,
                0 => return malformed(start, "the value of an attribute has no end"),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(Span::new(start, self.at - 1))
    }

    fn end_tag(&mut self) -> Read<Token> {
        self.at += 2;
        let name = self.name()?.whole;
        self.skip_space();
        self.expect(b">", "'>' is expected")?;
        Ok(Token::End { name })
    }

    fn text(&mut self) -> Read<Token> {
        let start = self.at;
        loop {
            match self.peek() {
                b'<' | 0 => return Ok(Token::Text(Span::new(start, self.at))),
                b'&' => self.at = reference_end(self.document, self.at)?,
                b']' if self.rest().starts_with(b"]]>") => return malformed(self.at, "']]>' in text"),
                _ => self.at += 1,
            }
        }
    }

    fn section(&mut self) -> Read<Token> {
        self.expect(b"<![CDATA[", "a CDATA section is expected")?;
        self.until(b"]]>", "a CDATA section has no end").map(Token::Section)
    }

    fn comment(&mut self) -> Read<Token> {
        self.at += 4;
        self.until(b"--", "a comment has no end")?;
        self.expect(b">", "'--' in a comment")?;
        Ok(Token::Aside)
    }

    fn instruction(&mut self) -> Read<Token> {
        self.at += 2;
        let target = self.part()?.of(self.document);
        let reserved = target.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"xml"));
        if (reserved && target != b"xml-stylesheet") || self.peek() == b':' {
            return unsure("an instruction that is reserved");
        }
        if !is_space(self.peek()) && !self.rest().starts_with(b"?>") {
            return malformed(self.at, "space or '?>' is expected");
        }
        self.until(b"?>", "an instruction has no end")?;
        Ok(Token::Aside)
    }

    /// Step over `<?xml …?>`, which may be missing, and must then not say anything unusual.
    fn declaration(&mut self) -> Read<()> {
        if !matches!(self.rest(), [b'<', b'?', b'x', b'm', b'l', space, ..] if is_space(*space)) {
            return Ok(());
        }
        self.at += 5;
        let version = self.declared(b"version")?;
        if version.is_none_or(|value| value.of(self.document) != b"1.0") {
            return unsure("another version of XML");
        }
        let encoding = self.declared(b"encoding")?;
        if encoding.is_some_and(|value| !value.of(self.document).eq_ignore_ascii_case(b"utf-8")) {
            return unsure("another encoding than UTF-8");
        }
        let standalone = self.declared(b"standalone")?;
        if standalone.is_some_and(|value| !matches!(value.of(self.document), b"yes" | b"no")) {
            return malformed(self.at, "standalone is neither yes nor no");
        }
        self.skip_space();
        self.expect(b"?>", "'?>' is expected")
    }

    /// The value of a declaration's attribute, if that comes next.
    fn declared(&mut self, name: &[u8]) -> Read<Option<Span>> {
        let start = self.at;
        if !(self.skip_space() && self.skip(name)) {
            self.at = start;
            return Ok(None);
        }
        self.skip_space();
        self.expect(b"=", "'=' is expected")?;
        self.skip_space();
        self.quoted().map(Some)
    }
}

impl From<std::str::Utf8Error> for Stop {
    fn from(error: std::str::Utf8Error) -> Self {
        Stop::Malformed { at: error.valid_up_to(), why: "not UTF-8" }
    }
}
