//! What a schema asks for, as Python compiled it: types that refer to each other by number.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

/// One schema, and with it all that may be in documents of its namespace.
#[derive(Deserialize)]
pub struct Schema {
    pub namespace: String,
    pub types: Vec<Type>,
    pub simple: Vec<Simple>,
    /// The elements that a document may consist of; the first is the event.
    pub roots: Vec<Child>,
}

/// The type of an element.
#[derive(Deserialize)]
pub struct Type {
    pub attributes: Vec<Wanted>,
    /// Whether any other attribute may be there as well.
    pub more_attributes: bool,
    pub content: Content,
}

/// An attribute, which has no namespace.
#[derive(Deserialize)]
pub struct Wanted {
    pub name: String,
    pub simple: usize,
    pub required: bool,
    pub fixed: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Content {
    /// Neither text nor elements.
    Empty,
    /// Text alone.
    Text { simple: usize },
    /// Elements alone, in an order that an automaton accepts.
    Elements(Automaton),
    /// Any elements, which are not looked at; text between them, if it is *mixed*.
    Any { mixed: bool },
}

/// From state to state by children; begins in state 0.
#[derive(Deserialize)]
pub struct Automaton {
    pub children: Vec<Child>,
    /// For each state and each of the children the next state; none where it must not be there.
    pub next: Vec<Vec<Option<usize>>>,
    /// For each state whether the element may end there.
    pub ends: Vec<bool>,
}

/// An element that may be there, and its type.
#[derive(Deserialize)]
pub struct Child {
    pub namespace: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: usize,
}

/// What text may be.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Simple {
    String,
    /// One of these; *tokens* may have space around them.
    Choice {
        values: Vec<String>,
        tokens: bool,
    },
    Token,
    Float {
        low: Option<f64>,
        high: Option<f64>,
    },
    DateTime,
    AnyUri,
    Id,
}

impl Schema {
    pub fn parse(json: &str) -> PyResult<Self> {
        let schema: Schema = serde_json::from_str(json).map_err(refuse)?;
        let whole = schema.roots.iter().all(|root| root.kind < schema.types.len())
            && schema.types.iter().all(|kind| schema.is_whole(kind));
        if whole { Ok(schema) } else { Err(refuse("a number leads nowhere")) }
    }

    /// Whether all numbers in a type lead somewhere.
    fn is_whole(&self, kind: &Type) -> bool {
        let simple = |number: usize| number < self.simple.len();
        let content = match &kind.content {
            Content::Text { simple: number } => simple(*number),
            Content::Elements(automaton) => automaton.is_whole(self.types.len()),
            Content::Empty | Content::Any { .. } => true,
        };
        content && kind.attributes.iter().all(|attribute| simple(attribute.simple))
    }

    pub fn is_root(&self, namespace: &[u8], name: &[u8]) -> bool {
        self.roots.iter().any(|root| root.is(namespace, name))
    }
}

impl Automaton {
    fn is_whole(&self, types: usize) -> bool {
        let states = self.ends.len();
        let row = |row: &Vec<Option<usize>>| {
            row.len() == self.children.len() && row.iter().flatten().all(|state| *state < states)
        };
        states > 0
            && self.next.len() == states
            && self.next.iter().all(row)
            && self.children.iter().all(|child| child.kind < types)
    }

    /// The type of the child of this name, and the state behind it.
    pub fn step(&self, state: usize, namespace: &[u8], name: &[u8]) -> Option<(usize, usize)> {
        let at = self.children.iter().position(|child| child.is(namespace, name))?;
        let next = *self.next.get(state)?.get(at)?;
        Some((self.children.get(at)?.kind, next?))
    }

    pub fn may_end(&self, state: usize) -> bool {
        self.ends.get(state).copied().unwrap_or(false)
    }
}

impl Child {
    pub fn is(&self, namespace: &[u8], name: &[u8]) -> bool {
        self.name.as_bytes() == name && self.namespace.as_bytes() == namespace
    }
}

fn refuse(why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("no table of a schema: {why}"))
}
