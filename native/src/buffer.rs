//! Bodies as they come from Python: borrowed where nothing can change them, copied where something
//! can.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

/// The bytes of one message: a range of some `bytes`.
pub struct MessageBuffer<'py> {
    owner: Bound<'py, PyBytes>,
    range: Range<usize>,
}

impl<'py> MessageBuffer<'py> {
    /// Take *value*: `bytes`, a view of some, or any other buffer, of which a copy is made.
    ///
    /// Fails with a TypeError or BufferError where it is no buffer.
    pub fn new(value: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = value.cast_exact::<PyBytes>() {
            return Ok(MessageBuffer::whole(bytes.clone()));
        }
        let view = PyMemoryView::from(value)?;
        if let Some(body) = MessageBuffer::inside_bytes(&view)? {
            return Ok(body);
        }
        let copy = view.call_method0(intern!(value.py(), "tobytes"))?;
        Ok(MessageBuffer::whole(copy.cast_into::<PyBytes>()?))
    }

    fn whole(owner: Bound<'py, PyBytes>) -> Self {
        let range = 0..owner.as_bytes().len();
        MessageBuffer { owner, range }
    }

    /// The body that *view* shows, if that is a stretch of `bytes`.
    fn inside_bytes(view: &Bound<'py, PyMemoryView>) -> PyResult<Option<Self>> {
        let Ok(owner) = view.getattr(intern!(view.py(), "obj"))?.cast_into_exact::<PyBytes>() else {
            return Ok(None);
        };
        let Ok(buffer) = pyo3::buffer::PyBuffer::<u8>::get(view) else {
            return Ok(None);
        };
        let start = buffer.buf_ptr().addr().wrapping_sub(owner.as_bytes().as_ptr().addr());
        let range = start..start.saturating_add(buffer.len_bytes());
        let inside = buffer.is_c_contiguous() && owner.as_bytes().get(range.clone()).is_some();
        Ok(inside.then_some(MessageBuffer { owner, range }))
    }

    pub fn py(&self) -> Python<'py> {
        self.owner.py()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.owner.as_bytes()[self.range.clone()]
    }

    /// A memoryview of a *part* of the body.
    pub fn view(&self, part: Range<usize>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.owner.py();
        let start = (self.range.start + part.start) as isize;
        let slice = PySlice::new(py, start, start + part.len() as isize, 1);
        PyMemoryView::from(&self.owner)?.get_item(slice)
    }
}
