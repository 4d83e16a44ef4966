//! Bytes to Python objects: `Decoder`, which executes a plan.

pub mod plan;
pub mod reader;
pub mod skip;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyList, PyString};

use crate::buffer::MessageBuffer;
use crate::cursor::Cursor;
use crate::decode::plan::Plan;
use crate::decode::reader::{Reader, RecordReader, Symbol, readers};
use crate::decode::skip::skip;
use crate::error::{Checked, DecodeError, Error, Located};

/// Decodes the bodies of one plan.  Safe to share between threads.
///
/// Args:
///     plan: The plan, as JSON.
///     constants: Values of the fields that the writer lacks.
///     converters: Functions of one argument that make the values of logical types.
///     views: Whether bytes and fixed come as memoryviews into the body.
///
/// Raises:
///     ValueError: It is no plan.
#[pyclass(frozen, module = "nightwire_native")]
pub struct Decoder {
    plan: Plan,
    readers: Vec<Reader>,
    views: bool,
}

#[pymethods]
impl Decoder {
    #[new]
    fn new(
        py: Python<'_>,
        plan: &str,
        constants: Vec<Py<PyAny>>,
        converters: Vec<Py<PyAny>>,
        views: bool,
    ) -> PyResult<Self> {
        let plan = Plan::parse(plan, constants.len(), converters.len())?;
        let readers = readers(py, &plan, &constants, &converters)?;
        Ok(Decoder { plan, readers, views })
    }

    /// Return the value whose Avro body is *body*, any buffer.
    ///
    /// Raises:
    ///     DecodeError: It is cut off, malformed, or longer than its value; says where. [byte]
    fn decode<'py>(&self, body: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let body = MessageBuffer::new(body)?;
        let mut reading = Reading {
            plan: &self.plan,
            readers: &self.readers,
            py: body.py(),
            cursor: Cursor::new(body.bytes()),
            body: self.views.then_some(&body),
        };
        let value = reading.node(self.plan.root);
        let value = value.and_then(|value| self.plan.check_end(&reading.cursor).map(|()| value));
        value.map_err(|error| decode_error(*error, reading.cursor.at))
    }
}

/// The exception for an *error* that was noticed at byte *at*.
pub fn decode_error(error: Error, at: usize) -> PyErr {
    match error {
        Error::Raised(error) => error,
        Error::Trailing { end, size } => DecodeError::new_err(format!(
            ": the record ends at byte {end} of {size}; is it of another schema?"
        )),
        Error::Input { path, why } => {
            let place = if path.is_empty() {
                String::new()
            } else {
                format!(", in {}", path.trim_start_matches('.'))
            };
            DecodeError::new_err(format!(": body is cut off or malformed at byte {at}{place}: {why}"))
        }
    }
}

/// One body on its way.
struct Reading<'a, 'py> {
    plan: &'a Plan,
    readers: &'a [Reader],
    py: Python<'py>,
    cursor: Cursor<'a>,
    /// Where views look into, if views are wanted.
    body: Option<&'a MessageBuffer<'py>>,
}

type Value<'py> = Checked<Bound<'py, PyAny>>;

impl<'a, 'py> Reading<'a, 'py> {
    #[inline]
    fn node(&mut self, node: usize) -> Value<'py> {
        self.read(&self.readers[node])
    }

    fn read(&mut self, reader: &'a Reader) -> Value<'py> {
        let py = self.py;
        Ok(match reader {
            Reader::Null => py.None().into_bound(py),
            Reader::Boolean => PyBool::new(py, self.cursor.boolean()?).to_owned().into_any(),
            Reader::Int => self.cursor.int()?.into_bound_py_any(py)?,
            Reader::Long => self.cursor.long()?.into_bound_py_any(py)?,
            Reader::Float => PyFloat::new(py, f64::from(self.cursor.float()?)).into_any(),
            Reader::Double => PyFloat::new(py, self.cursor.double()?).into_any(),
            Reader::RealInt => PyFloat::new(py, f64::from(self.cursor.int()?)).into_any(),
            Reader::RealLong => PyFloat::new(py, self.cursor.long()? as f64).into_any(),
            Reader::Nan => PyFloat::new(py, f64::NAN).into_any(),
            Reader::String => PyString::new(py, self.cursor.string()?).into_any(),
            Reader::Bytes => {
                let bytes = self.cursor.bytes()?;
                self.bytes(bytes)?
            }
            Reader::Fixed(size) => {
                let bytes = self.cursor.take(*size)?;
                self.bytes(bytes)?
            }
            Reader::Union(branches) => {
                let chosen = self.cursor.index(branches.len(), "branch")?;
                return self.node(branches[chosen]);
            }
            Reader::Enum(symbols) => self.symbol(symbols)?,
            Reader::Constant { value, fresh: true } => fresh_copy(value.bind(py))?,
            Reader::Constant { value, fresh: false } => value.bind(py).clone(),
            Reader::Array(_) | Reader::Map(_) | Reader::Record(_) => {
                self.cursor.enter()?;
                let value = self.compound(reader)?;
                self.cursor.leave();
                value
            }
            Reader::Refuse { of, why } => return self.refuse(*of, why),
            Reader::Scale { of, factor, offset } => self.scale(*of, *factor, *offset)?,
            Reader::Converted { inner, converter } => self.convert(inner, converter)?,
        })
    }

    /// The *bytes* that were just read.
    fn bytes(&self, bytes: &[u8]) -> Value<'py> {
        Ok(match self.body {
            Some(body) => body.view(self.cursor.at - bytes.len()..self.cursor.at)?,
            None => PyBytes::new(self.py, bytes).into_any(),
        })
    }

    fn symbol(&mut self, symbols: &'a [Symbol]) -> Value<'py> {
        let start = self.cursor.at;
        match &symbols[self.cursor.index(symbols.len(), "symbol")?] {
            Ok(symbol) => Ok(symbol.bind(self.py).clone().into_any()),
            Err(unknown) => {
                self.cursor.at = start;
                Err(Error::new(format!("the reader knows no symbol {unknown}")))
            }
        }
    }

    fn compound(&mut self, reader: &'a Reader) -> Value<'py> {
        match reader {
            Reader::Array(items) => self.array(*items),
            Reader::Map(values) => self.map(*values),
            Reader::Record(record) => self.record(record),
            _ => unreachable!("only these have an inside"),
        }
    }

    fn array(&mut self, items: usize) -> Value<'py> {
        let list = PyList::empty(self.py);
        loop {
            let block = self.cursor.block(self.plan.least[items])?;
            for _ in 0..block.items {
                let item = self.node(items).in_item(list.len())?;
                list.append(item)?;
            }
            block.close(&self.cursor)?;
            if block.items == 0 {
                return Ok(list.into_any());
            }
        }
    }

    fn map(&mut self, values: usize) -> Value<'py> {
        let map = PyDict::new(self.py);
        loop {
            let block = self.cursor.block(self.plan.least[values] + 1)?;
            for _ in 0..block.items {
                let key = self.cursor.string()?;
                let value = self.node(values).in_item(key)?;
                map.set_item(key, value)?;
            }
            block.close(&self.cursor)?;
            if block.items == 0 {
                return Ok(map.into_any());
            }
        }
    }

    /// A copy of the template, in which every field is null already, is quicker than a dict that
    /// grows.
    fn record(&mut self, record: &'a RecordReader) -> Value<'py> {
        let dict = record.template.bind(self.py).copy()?;
        for field in &record.fields {
            match &field.key {
                None => skip(self.plan, field.node, &mut self.cursor).in_field("?")?,
                Some(key) => {
                    let value = self.node(field.node).in_field(&field.name)?;
                    if !value.is_none() {
                        dict.set_item(key.bind(self.py), value)?;
                    }
                }
            }
        }
        for (key, constant) in &record.fresh {
            dict.set_item(key.bind(self.py), fresh_copy(constant.bind(self.py))?)?;
        }
        Ok(dict.into_any())
    }

    fn refuse(&mut self, of: usize, why: &str) -> Value<'py> {
        let start = self.cursor.at;
        skip(self.plan, of, &mut self.cursor)?;
        self.cursor.at = start;
        Err(Error::new(why))
    }

    fn scale(&mut self, of: usize, factor: f64, offset: f64) -> Value<'py> {
        let value = self.node(of)?;
        if value.is_none() {
            return Ok(value);
        }
        let number: f64 = value.extract().map_err(|error| Error::from_python(self.py, error))?;
        Ok(PyFloat::new(self.py, number * factor + offset).into_any())
    }

    fn convert(&mut self, inner: &'a Reader, converter: &Py<PyAny>) -> Value<'py> {
        let start = self.cursor.at;
        let views = self.body.take(); // converters want bytes
        let value = self.read(inner)?;
        self.body = views;
        if value.is_none() {
            return Ok(value); // of a scale: nulls stay null
        }
        converter.bind(self.py).call1((value,)).map_err(|error| {
            self.cursor.at = start;
            Error::from_python(self.py, error)
        })
    }
}

/// A default that the alerts do not share.
fn fresh_copy<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    value.py().import("copy")?.call_method1("deepcopy", (value,))
}
