//! `Checker`: what Python asks.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::check::{Found, check};
use super::facts::Event;
use super::scan::Attribute;
use super::scan::Stop;
use super::tables::Schema;
use super::tree::Span;
use super::tree::Tree;
use super::validate::Misfit;

/// Checks documents against schemas.  Safe to share between threads.
///
/// Args:
///     schemas: A table of each schema, as JSON.
///
/// Raises:
///     ValueError: One is none.
#[pyclass(frozen, module = "nightwire_native")]
pub struct Checker {
    schemas: Vec<Schema>,
}

#[pymethods]
impl Checker {
    #[new]
    fn new(schemas: Vec<String>) -> PyResult<Self> {
        let schemas = schemas.iter().map(|json| Schema::parse(json)).collect::<PyResult<_>>()?;
        Ok(Checker { schemas })
    }

    /// Return what *document* is; other threads run meanwhile.
    fn check(&self, py: Python<'_>, document: Bound<'_, PyBytes>) -> Checked {
        let bytes = document.as_bytes();
        let (verdict, contents) = py.detach(|| judge(bytes, &self.schemas));
        Checked { document: document.unbind(), verdict, contents }
    }
}

/// What a document was found to be.
///
/// `well_formed` and `valid` are None where only a complete parser, a complete validator can say.
/// `line` and `reason` say what is wrong, where that is so.  The rest is there where the document
/// is well-formed.
#[pyclass(frozen, module = "nightwire_native")]
pub struct Checked {
    document: Py<PyBytes>,
    verdict: Verdict,
    contents: Option<Contents>,
}

#[derive(Default)]
struct Verdict {
    well_formed: Option<bool>,
    valid: Option<bool>,
    line: Option<usize>,
    reason: Option<String>,
}

struct Contents {
    tree: Tree,
    attributes: Vec<Attribute>,
    namespace: String,
    element: Span,
}

#[pymethods]
impl Checked {
    #[getter]
    fn well_formed(&self) -> Option<bool> {
        self.verdict.well_formed
    }

    #[getter]
    fn valid(&self) -> Option<bool> {
        self.verdict.valid
    }

    /// The line on which it is wrong, or on which the start tag of what is wrong ends; from 1.
    #[getter]
    fn line(&self) -> Option<usize> {
        self.verdict.line
    }

    #[getter]
    fn reason(&self) -> Option<&str> {
        self.verdict.reason.as_deref()
    }

    /// The root element's namespace, "" for none.
    #[getter]
    fn namespace(&self) -> Option<&str> {
        self.contents.as_ref().map(|contents| contents.namespace.as_str())
    }

    /// From the root element's first byte to behind its last.
    #[getter]
    fn element(&self) -> Option<(usize, usize)> {
        self.contents.as_ref().map(|contents| (contents.element.start(), contents.element.end()))
    }

    /// Whether the root element has this name, in whatever namespace.
    fn is_named(&self, py: Python<'_>, name: &str) -> bool {
        self.event(py).is_some_and(|event| event.is(0, name))
    }

    /// The value of an attribute of the root element.
    fn attribute(&self, py: Python<'_>, name: &str) -> Option<String> {
        self.event(py).and_then(|event| event.attribute(0, name).map(Cow::into_owned))
    }

    /// What the event says, as text.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.event(py).map(|event| event.facts(py)).transpose()
    }
}

impl Checked {
    fn event<'a>(&'a self, py: Python<'a>) -> Option<Event<'a>> {
        let Contents { tree, attributes, .. } = self.contents.as_ref()?;
        Some(Event { document: self.document.as_bytes(py), tree, attributes })
    }
}

fn judge(document: &[u8], schemas: &[Schema]) -> (Verdict, Option<Contents>) {
    match check(document, schemas) {
        Err(Stop::Unsure(why)) => (Verdict { reason: Some(why.into()), ..Verdict::default() }, None),
        Err(Stop::Malformed { at, why }) => {
            let (line, reason) = (Some(line(document, at)), Some(why.into()));
            (Verdict { well_formed: Some(false), valid: Some(false), line, reason }, None)
        }
        Ok(found) => {
            let namespace = String::from_utf8_lossy(found.namespace).into_owned();
            let Found { tree, attributes, element, misfit, .. } = found;
            (judge_fit(document, misfit), Some(Contents { tree, attributes, namespace, element }))
        }
    }
}

fn judge_fit(document: &[u8], misfit: Option<Misfit>) -> Verdict {
    let (valid, line, reason) = match misfit {
        None => (Some(true), None, None),
        Some(Misfit::Wrong { at, why }) => (Some(false), Some(line(document, at)), Some(why)),
        Some(Misfit::Unsure) => (None, None, None),
    };
    Verdict { well_formed: Some(true), valid, line, reason }
}

fn line(document: &[u8], at: usize) -> usize {
    let before = document.get(..at).unwrap_or(document);
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
