//! A document against a schema, element by element, in the order in which libxml2 complains.

use super::references::{attribute_value, section_value, text_value};
use super::scan::Attribute;
use super::scopes::Scopes;
use super::simple::is_fixed;
use super::tables::{Content, Schema, Simple, Type, Wanted};

const INSTANCE: &[u8] = b"http://www.w3.org/2001/XMLSchema-instance";
const HINTS: [&[u8]; 2] = [b"schemaLocation", b"noNamespaceSchemaLocation"];

/// Why a document does not fit, as far as it was read.
pub enum Misfit {
    /// The byte at which the start tag of the culprit ends, and what is wrong with it.
    Wrong { at: usize, why: String },
    /// Only a complete validator can judge.
    Unsure,
}

pub type Judged<T> = Result<T, Misfit>;

/// An element as it begins.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    pub namespace: &'a [u8],
    pub name: &'a [u8],
    /// Where its start tag ends.
    pub at: usize,
}

impl Element<'_> {
    fn wrong<T>(&self, why: &str) -> Judged<T> {
        let name = String::from_utf8_lossy(self.name);
        let space = String::from_utf8_lossy(self.namespace);
        let element = if space.is_empty() { name.into() } else { format!("{{{space}}}{name}") };
        Err(Misfit::Wrong { at: self.at, why: format!("Element '{element}'{why}") })
    }
}

/// An open element.
struct Frame<'s, 'a> {
    element: Element<'a>,
    /// None inside of what is not looked at.
    content: Option<&'s Content>,
    state: usize,
    /// Where its value begins, if that matters.
    value: usize,
}

pub struct Validator<'s, 'a> {
    schema: &'s Schema,
    document: &'a [u8],
    frames: Vec<Frame<'s, 'a>>,
    /// The values of open elements.
    values: String,
    ids: Vec<String>,
}

impl<'s, 'a> Validator<'s, 'a> {
    pub fn new(schema: &'s Schema, document: &'a [u8]) -> Self {
        let frames = Vec::with_capacity(16);
        Validator { schema, document, frames, values: String::new(), ids: Vec::new() }
    }

    pub fn start(&mut self, element: Element<'a>, attributes: &[Attribute], scopes: &Scopes) -> Judged<()> {
        look_for_types(attributes, scopes)?;
        let content = match self.kind(&element)? {
            None => None,
            Some(kind) => {
                self.attributes(kind, &element, attributes, scopes)?;
                Some(&kind.content)
            }
        };
        self.frames.push(Frame { element, content, state: 0, value: self.values.len() });
        Ok(())
    }

    /// Judge some text, or a CDATA *section*, of the element that is open.
    pub fn text(&mut self, raw: &[u8], section: bool) -> Judged<()> {
        let Some(Frame { element, content: Some(content), .. }) = self.frames.last() else { return Ok(()) };
        let value = || if section { section_value(raw) } else { text_value(raw) };
        match content {
            Content::Empty => {
                element.wrong(": Character content is not allowed, because the content type is empty.")
            }
            Content::Elements(_) | Content::Any { mixed: false } if !is_blank(&value()) => element.wrong(
                ": Character content other than whitespace is not allowed because the content type is \
                 'element-only'.",
            ),
            Content::Text { simple } if !self.simple(*simple)?.is_free() => {
                self.values.push_str(&value());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Judge the element that is open as a whole.
    pub fn end(&mut self) -> Judged<()> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        match frame.content {
            Some(Content::Elements(automaton)) if !automaton.may_end(frame.state) => {
                frame.element.wrong(": Missing child element(s).")
            }
            Some(Content::Text { simple }) => {
                let value = self.values.get(frame.value..).unwrap_or_default();
                let fits = self.simple(*simple)?.accepts(value).ok_or(Misfit::Unsure)?;
                if !fits {
                    return frame.element.wrong(&format!(": '{value}' is not a valid value."));
                }
                self.values.truncate(frame.value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The type of an element here; None if any would do.
    fn kind(&mut self, element: &Element) -> Judged<Option<&'s Type>> {
        let (space, name) = (element.namespace, element.name);
        let Some(above) = self.frames.last_mut() else {
            let root = self.schema.roots.iter().find(|root| root.is(space, name)).ok_or(Misfit::Unsure)?;
            return self.schema.types.get(root.kind).ok_or(Misfit::Unsure).map(Some);
        };
        match above.content {
            None | Some(Content::Any { .. }) if self.schema.is_root(space, name) => Err(Misfit::Unsure),
            None | Some(Content::Any { .. }) => Ok(None),
            Some(Content::Empty) => {
                above.element.wrong(": Element content is not allowed, because it is empty.")
            }
            Some(Content::Text { .. }) => above
                .element
                .wrong(": Element content is not allowed, because the type definition is simple."),
            Some(Content::Elements(automaton)) => match automaton.step(above.state, space, name) {
                None => element.wrong(": This element is not expected."),
                Some((kind, state)) => {
                    above.state = state;
                    self.schema.types.get(kind).ok_or(Misfit::Unsure).map(Some)
                }
            },
        }
    }

    fn attributes(
        &mut self,
        kind: &Type,
        element: &Element,
        attributes: &[Attribute],
        scopes: &Scopes,
    ) -> Judged<()> {
        let mut required = kind.attributes.iter().filter(|wanted| wanted.required).count();
        for attribute in attributes.iter().filter(|attribute| !scopes.declares(attribute)) {
            let name = attribute.name.local.of(self.document);
            let plain = attribute.name.prefix.is_empty();
            match kind.attributes.iter().find(|wanted| plain && wanted.name.as_bytes() == name) {
                Some(wanted) => {
                    required -= usize::from(wanted.required);
                    self.value(wanted, attribute, element)?;
                }
                None if kind.more_attributes || is_hint(attribute, scopes) => {}
                None => return element.wrong(": An attribute is not allowed."),
            }
        }
        if required > 0 { element.wrong(": An attribute is required but missing.") } else { Ok(()) }
    }

    fn value(&mut self, wanted: &Wanted, attribute: &Attribute, element: &Element) -> Judged<()> {
        let simple = self.simple(wanted.simple)?;
        if wanted.fixed.is_none() && simple.is_free() {
            return Ok(());
        }
        let value = attribute_value(attribute.value.of(self.document));
        let fits = match &wanted.fixed {
            Some(fixed) => is_fixed(&value, fixed),
            None => simple.accepts(&value),
        };
        if !fits.ok_or(Misfit::Unsure)? {
            let why = format!(", attribute '{}': '{value}' is not a valid value.", wanted.name);
            return element.wrong(&why);
        }
        if matches!(simple, Simple::Id) { self.identify(value.into_owned(), element) } else { Ok(()) }
    }

    fn identify(&mut self, id: String, element: &Element) -> Judged<()> {
        if self.ids.contains(&id) {
            return element.wrong(&format!(": '{id}' is there twice."));
        }
        self.ids.push(id);
        if self.ids.len() > 64 { Err(Misfit::Unsure) } else { Ok(()) }
    }

    fn simple(&self, number: usize) -> Judged<&'s Simple> {
        self.schema.simple.get(number).ok_or(Misfit::Unsure)
    }
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(super::characters::is_space)
}

/// Leave an element that says its own type, or that it is nothing, to others.
fn look_for_types(attributes: &[Attribute], scopes: &Scopes) -> Judged<()> {
    let says_more = |one: &Attribute| is_instance(one, scopes) && !is_hint(one, scopes);
    if attributes.iter().any(says_more) { Err(Misfit::Unsure) } else { Ok(()) }
}

/// Whether an attribute only says where schemas are.
fn is_hint(attribute: &Attribute, scopes: &Scopes) -> bool {
    HINTS.contains(&attribute.name.local.of(scopes.document)) && is_instance(attribute, scopes)
}

fn is_instance(attribute: &Attribute, scopes: &Scopes) -> bool {
    let prefix = attribute.name.prefix;
    !prefix.is_empty() && !scopes.declares(attribute) && scopes.namespace(prefix) == Ok(INSTANCE)
}
