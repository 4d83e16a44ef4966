//! One pass over a document: is it well-formed, what is it, does it fit its schema.

use std::ops::Range;

use super::characters::is_space;
use super::scan::{Attribute, Name, Scanner, Token};
use super::scan::{Read, malformed};
use super::scopes::Scopes;
use super::tables::Schema;
use super::tree::Span;
use super::tree::Tree;
use super::validate::{Element, Judged, Misfit, Validator};

const MAX_DEPTH: usize = 64;
const DOCTYPE: &[u8] = b"<!DOCTYPE";
const PROLOGUE: usize = 1024;

/// What a well-formed document is.
pub struct Found<'a> {
    pub tree: Tree,
    pub attributes: Vec<Attribute>,
    pub namespace: &'a [u8],
    /// From the `<` to the `>` of the root element.
    pub element: Span,
    /// Why it does not fit the schema of its namespace.
    pub misfit: Option<Misfit>,
}

/// Look at *document*, of which any of the *schemas* may be the schema.
pub fn check<'a>(document: &'a [u8], schemas: &[Schema]) -> Read<Found<'a>> {
    let head = document.get(..PROLOGUE).unwrap_or(document);
    if head.windows(DOCTYPE.len()).any(|window| window == DOCTYPE) {
        return malformed(0, "a document type (DOCTYPE) is not accepted");
    }
    let mut walk = Walk::new(document, schemas)?;
    while walk.step()? {}
    walk.found()
}

struct Walk<'s, 'a> {
    scanner: Scanner<'a>,
    scopes: Scopes<'a>,
    schemas: &'s [Schema],
    validator: Option<Validator<'s, 'a>>,
    misfit: Option<Misfit>,
    /// The names of the open elements, as written.
    open: Vec<Span>,
    tree: Tree,
    namespace: &'a [u8],
    element: Span,
}

impl<'s, 'a> Walk<'s, 'a> {
    fn new(document: &'a [u8], schemas: &'s [Schema]) -> Read<Self> {
        Ok(Walk {
            scanner: Scanner::new(document)?,
            scopes: Scopes::new(document),
            schemas,
            validator: None,
            misfit: None,
            open: Vec::with_capacity(MAX_DEPTH),
            tree: Tree::default(),
            namespace: b"",
            element: Span::default(),
        })
    }

    /// Take the next token; whether there was one.
    fn step(&mut self) -> Read<bool> {
        let start = self.scanner.at;
        match self.scanner.next()? {
            Token::Start { name, attributes, empty } => {
                self.start(start, name, attributes)?;
                if empty { self.end() } else { Ok(()) }
            }
            Token::End { name } => self.end_tag(name),
            Token::Text(text) => self.text(text, false),
            Token::Section(text) => self.text(text, true),
            Token::Aside => Ok(()),
            Token::Nothing => return Ok(false),
        }
        .map(|()| true)
    }

    fn start(&mut self, start: usize, name: Name, attributes: Range<usize>) -> Read<()> {
        self.check_place(start)?;
        let namespace = self.namespace(name, attributes.clone())?;
        if self.open.is_empty() {
            self.root(start, namespace);
        }
        let element = Element { namespace, name: name.local.of(self.scanner.document), at: self.scanner.at };
        if let Some(validator) = &mut self.validator {
            let own = self.scanner.attributes.get(attributes.clone()).unwrap_or_default();
            let judged = validator.start(element, own, &self.scopes);
            self.judge(judged);
        }
        self.open.push(name.whole);
        self.tree.open(name.local, attributes, self.scanner.at);
        Ok(())
    }

    /// The namespace of an element, behind what its attributes declare.
    fn namespace(&mut self, name: Name, attributes: Range<usize>) -> Read<&'a [u8]> {
        let own = self.scanner.attributes.get(attributes).unwrap_or_default();
        self.scopes.enter(own, self.open.len())?;
        self.scopes.check(own)?;
        self.scopes.namespace(name.prefix)
    }

    /// Refuse a second root, and elements inside too many others.
    fn check_place(&self, at: usize) -> Read<()> {
        match self.open.len() {
            0 if !self.tree.is_empty() => malformed(at, "an element behind the end"),
            MAX_DEPTH => malformed(at, "elements are nested more than 64 deep"),
            _ => Ok(()),
        }
    }

    /// The root begins: note what it is, and whose schema it should fit.
    fn root(&mut self, start: usize, namespace: &'a [u8]) {
        self.namespace = namespace;
        self.element = Span::new(start, start);
        let wanted = |schema: &&Schema| schema.namespace.as_bytes() == namespace;
        match self.schemas.iter().find(wanted) {
            Some(schema) => self.validator = Some(Validator::new(schema, self.scanner.document)),
            None => self.misfit = Some(unknown(self.scanner.at)),
        }
    }

    fn end_tag(&mut self, name: Span) -> Read<()> {
        let document = self.scanner.document;
        match self.open.last() {
            Some(open) if open.of(document) == name.of(document) => self.end(),
            _ => malformed(name.start(), "the end of another element"),
        }
    }

    fn end(&mut self) -> Read<()> {
        if let Some(validator) = &mut self.validator {
            let judged = validator.end();
            self.judge(judged);
        }
        self.open.pop();
        self.tree.close();
        self.scopes.leave(self.open.len());
        if self.open.is_empty() {
            self.element = Span::new(self.element.start(), self.scanner.at);
        }
        Ok(())
    }

    fn text(&mut self, text: Span, section: bool) -> Read<()> {
        let raw = text.of(self.scanner.document);
        if self.open.is_empty() {
            let blank = !section && raw.iter().all(|byte| is_space(*byte));
            return if blank { Ok(()) } else { malformed(text.start(), "text outside of the element") };
        }
        if let Some(validator) = &mut self.validator {
            let judged = validator.text(raw, section);
            self.judge(judged);
        }
        Ok(())
    }

    /// Keep the first misfit, which ends validation.
    fn judge(&mut self, judged: Judged<()>) {
        if let Err(misfit) = judged {
            self.misfit = Some(misfit);
            self.validator = None;
        }
    }

    fn found(self) -> Read<Found<'a>> {
        if self.tree.is_empty() || !self.open.is_empty() {
            return malformed(self.scanner.at, "the document ends too early");
        }
        Ok(Found {
            tree: self.tree,
            attributes: self.scanner.attributes,
            namespace: self.namespace,
            element: self.element,
            misfit: self.misfit,
        })
    }
}

fn unknown(at: usize) -> Misfit {
    Misfit::Wrong { at, why: "no schema of this namespace is known".into() }
}
