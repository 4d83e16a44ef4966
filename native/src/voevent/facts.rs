//! What an event says, as text: by names of elements, whatever their namespaces.

use std::borrow::Cow;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::references::{attribute_value, section_value, text_value};
use super::scan::Attribute;
use super::tree::Tree;

/// A document that was found well-formed.
pub struct Event<'a> {
    pub document: &'a [u8],
    pub tree: &'a Tree,
    pub attributes: &'a [Attribute],
}

impl Event<'_> {
    /// The value of an attribute without a namespace.
    pub fn attribute(&self, node: usize, name: &str) -> Option<Cow<'_, str>> {
        let own = self.attributes.get(self.tree.get(node)?.attributes.clone())?;
        let plain = |one: &&Attribute| one.name.whole.of(self.document) == name.as_bytes();
        let value = own.iter().find(plain)?.value.of(self.document);
        Some(attribute_value(value))
    }

    /// What the event says of itself, and where and when it was.
    pub fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = PyDict::new(py);
        facts.set_item(intern!(py, "author"), self.text(0, &["Who", "AuthorIVORN"]))?;
        facts.set_item(intern!(py, "date"), self.text(0, &["Who", "Date"]))?;
        let place = self.first(0, &["WhereWhen", "ObservationLocation"]);
        facts.set_item(
            intern!(py, "where_when"),
            place.map(|place| self.where_when(py, place)).transpose()?,
        )?;
        facts.set_item(intern!(py, "params"), self.params(py)?)?;
        facts.set_item(intern!(py, "citations"), self.citations(py)?)?;
        Ok(facts)
    }

    fn where_when<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item(intern!(py, "system"), self.system(place))?;
        found.set_item(intern!(py, "scale"), self.text(place, &["TimeScale"]))?;
        found.set_item(intern!(py, "time"), self.time(place))?;
        found.set_item(intern!(py, "position"), self.position(place))?;
        Ok(found)
    }

    fn system(&self, place: usize) -> Option<Cow<'_, str>> {
        let named = |name, attribute| {
            let mut values = self.all(place, name).filter_map(move |node| self.attribute(node, attribute));
            values.find(|value| !value.is_empty())
        };
        named("AstroCoords", "coord_system_id").or_else(|| named("AstroCoordSystem", "id"))
    }

    fn time(&self, place: usize) -> Option<Cow<'_, str>> {
        self.text(place, &["ISOTime"]).or_else(|| self.text(place, &["ISOTimeStart"]))
    }

    /// Unit, first and second coordinate, and radius of the error.
    fn position(&self, place: usize) -> Option<[Option<Cow<'_, str>>; 4]> {
        let node = self.first(place, &["Position2D"]).or_else(|| self.first(place, &["Position3D"]))?;
        let text = |name| self.text(node, &[name]);
        Some([self.attribute(node, "unit"), text("C1"), text("C2"), text("Error2Radius")])
    }

    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let params = PyList::empty(py);
        for what in self.all(0, "What") {
            for node in self.all(what, "Param") {
                params.append(self.param(py, node)?)?;
            }
        }
        Ok(params)
    }

    fn param<'py>(&self, py: Python<'py>, node: usize) -> PyResult<Bound<'py, PyDict>> {
        let param = PyDict::new(py);
        param.set_item(intern!(py, "name"), self.attribute(node, "name"))?;
        let value = self.attribute(node, "value").or_else(|| self.text(node, &["Value"]));
        param.set_item(intern!(py, "value"), value)?;
        param.set_item(intern!(py, "unit"), self.attribute(node, "unit"))?;
        param.set_item(intern!(py, "ucd"), self.attribute(node, "ucd"))?;
        let parent = self.tree.get(node).and_then(|node| node.parent);
        let group = parent.filter(|parent| self.is(*parent, "Group") || self.is(*parent, "Table"));
        param.set_item(intern!(py, "group"), group.and_then(|group| self.attribute(group, "name")))?;
        Ok(param)
    }

    fn citations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let citations = PyList::empty(py);
        for section in self.all(0, "Citations") {
            for node in self.all(section, "EventIVORN") {
                let cited = PyDict::new(py);
                cited.set_item(intern!(py, "ivorn"), self.own_text(node).trim())?;
                cited.set_item(intern!(py, "cite"), self.attribute(node, "cite").unwrap_or_default())?;
                citations.append(cited)?;
            }
        }
        Ok(citations)
    }

    pub fn is(&self, node: usize, name: &str) -> bool {
        self.tree.get(node).is_some_and(|node| node.name.of(self.document) == name.as_bytes())
    }

    fn all(&self, node: usize, name: &str) -> impl Iterator<Item = usize> {
        self.tree.below(node).filter(move |below| self.is(*below, name))
    }

    /// The first descendant that names lead to.
    fn first(&self, node: usize, path: &[&str]) -> Option<usize> {
        match path {
            [] => Some(node),
            [name, rest @ ..] => self.all(node, name).find_map(|found| self.first(found, rest)),
        }
    }

    /// The text of that descendant; none if it is blank.
    fn text(&self, node: usize, path: &[&str]) -> Option<Cow<'_, str>> {
        let text = match self.own_text(self.first(node, path)?) {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        };
        if text.is_empty() { None } else { Some(text) }
    }

    /// What an element says before anything but text comes.
    fn own_text(&self, node: usize) -> Cow<'_, str> {
        let content = self.tree.get(node).map_or(0, |node| node.content);
        let (mut text, mut rest) = self.text_at(content);
        while let Some(section) = rest.strip_prefix(b"<![CDATA[") {
            let end = section.windows(3).position(|window| window == b"]]>").unwrap_or(section.len());
            let behind = self.document.len() - section.len() + end + 3;
            let (more, left) = self.text_at(behind);
            text = (text + section_value(section.get(..end).unwrap_or_default())) + more;
            rest = left;
        }
        text
    }

    /// The text from there to the next markup, and the document from that on.
    fn text_at(&self, start: usize) -> (Cow<'_, str>, &[u8]) {
        let rest = self.document.get(start..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
        let (text, rest) = rest.split_at(end);
        (text_value(text), rest)
    }
}
