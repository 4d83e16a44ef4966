//! Namespaces: which prefix means which, from which element on.

use super::scan::Attribute;
use super::scan::{Read, malformed, unsure};
use super::simple::is_plain;
use super::tree::Span;

const MAX_BINDINGS: usize = 64;

/// The names of namespaces are values of attributes that hold neither references nor space.
pub struct Scopes<'a> {
    pub document: &'a [u8],
    /// Prefix, namespace, and the depth of the element that says so.
    bindings: Vec<(Span, Span, usize)>,
}

impl<'a> Scopes<'a> {
    pub fn new(document: &'a [u8]) -> Self {
        Scopes { document, bindings: Vec::with_capacity(8) }
    }

    /// Take in what the *attributes* of an element at *depth* declare.
    pub fn enter(&mut self, attributes: &[Attribute], depth: usize) -> Read<()> {
        for attribute in attributes {
            if !self.declares(attribute) {
                continue;
            }
            let (name, space) = (attribute.name, attribute.value);
            let prefix = if name.prefix.is_empty() { name.prefix } else { name.local };
            let nothing = prefix.is_empty() && space.is_empty();
            if prefix.of(self.document).starts_with(b"xml") || !(nothing || is_plain(space.of(self.document)))
            {
                return unsure("a namespace that is unusual");
            }
            if self.bindings.len() == MAX_BINDINGS {
                return unsure("so many namespaces");
            }
            self.bindings.push((prefix, space, depth));
        }
        Ok(())
    }

    /// Forget what elements at *depth* and deeper declared.
    pub fn leave(&mut self, depth: usize) {
        while self.bindings.last().is_some_and(|(_, _, since)| *since >= depth) {
            self.bindings.pop();
        }
    }

    /// Whether *attribute* declares a namespace.
    pub fn declares(&self, attribute: &Attribute) -> bool {
        let name = attribute.name;
        let xmlns = if name.prefix.is_empty() { name.local } else { name.prefix };
        xmlns.of(self.document) == b"xmlns"
    }

    /// The namespace that a *prefix* means; for none it is the default, and may be empty.
    pub fn namespace(&self, prefix: Span) -> Read<&'a [u8]> {
        let wanted = prefix.of(self.document);
        let mut found = self.bindings.iter().rev();
        match found.find(|(prefix, _, _)| prefix.of(self.document) == wanted) {
            Some((_, space, _)) => Ok(space.of(self.document)),
            None if prefix.is_empty() => Ok(b""),
            None if wanted.starts_with(b"xml") => unsure("a name of XML's own"),
            None => malformed(prefix.start(), "a prefix without a namespace"),
        }
    }

    /// Refuse prefixes without a namespace, and two *attributes* of one namespace and name.
    pub fn check(&self, attributes: &[Attribute]) -> Read<()> {
        let prefixed =
            |attribute: &&Attribute| !attribute.name.prefix.is_empty() && !self.declares(attribute);
        for (at, one) in attributes.iter().enumerate().filter(|(_, one)| prefixed(one)) {
            let space = self.namespace(one.name.prefix)?;
            for other in attributes.iter().take(at).filter(prefixed) {
                let alike = other.name.local.of(self.document) == one.name.local.of(self.document);
                if alike && self.namespace(other.name.prefix)? == space {
                    return malformed(one.name.whole.start(), "an attribute is there twice");
                }
            }
        }
        Ok(())
    }
}
