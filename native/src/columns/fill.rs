//! One body into the columns.

use super::builder::Columns;
use super::compile::{Op, Program, Target};
use super::scalar::{Scalar, decimal};
use crate::cursor::Cursor;
use crate::decode::plan::{Kind, Plan, ReadAs};
use crate::decode::reader::writers_name;
use crate::decode::skip::skip;
use crate::error::{Checked, Error, Located};

use arrow_schema::DataType;

impl Program {
    /// Append the row of *body* to *columns*; where reading ended, and how.
    pub fn fill(&self, plan: &Plan, body: &[u8], columns: &mut Columns) -> (usize, Checked<()>) {
        let mut filling = Filling { ops: &self.ops, plan, columns, cursor: Cursor::new(body) };
        let done = filling.run(self.root).and_then(|()| plan.check_end(&filling.cursor));
        (filling.cursor.at, done)
    }
}

struct Filling<'a> {
    ops: &'a [Op],
    plan: &'a Plan,
    columns: &'a mut Columns,
    cursor: Cursor<'a>,
}

impl<'a> Filling<'a> {
    fn run(&mut self, op: usize) -> Checked<()> {
        match &self.ops[op] {
            Op::Skip { node } => skip(self.plan, *node, &mut self.cursor),
            Op::Scalar { node, into } => self.scalar(*node, into),
            Op::Union { branches } => {
                let chosen = self.cursor.index(branches.len(), "branch")?;
                self.run(branches[chosen])
            }
            Op::Null { into } => {
                into.iter().for_each(|&builder| self.columns.append_null(builder));
                Ok(())
            }
            Op::Nan { into } => self.append_real(into, f64::NAN),
            Op::Constants { into } => {
                into.iter().try_for_each(|(builder, constant)| constant.append(self.columns, *builder))
            }
            Op::Scale { node, factor, offset, into } => match self.real(*node)? {
                Some(real) => self.append(Scalar::Real(real * factor + offset), into),
                None => {
                    into.iter().for_each(|target| self.columns.append_null(target.builder));
                    Ok(())
                }
            },
            Op::Refuse { node, why } => {
                let start = self.cursor.at;
                skip(self.plan, *node, &mut self.cursor)?;
                self.cursor.at = start;
                Err(Error::new(why))
            }
            compound => {
                self.cursor.enter()?;
                self.compound(compound)?;
                self.cursor.leave();
                Ok(())
            }
        }
    }

    fn compound(&mut self, op: &'a Op) -> Checked<()> {
        match op {
            Op::Record { structs, fields, constants } => {
                fields.iter().try_for_each(|(name, field)| self.run(*field).in_field(name))?;
                constants
                    .iter()
                    .try_for_each(|(builder, constant)| constant.append(self.columns, *builder))?;
                structs.iter().for_each(|&builder| self.columns.append_struct(builder));
                Ok(())
            }
            Op::Array { lists, items, least } => {
                self.blocks(*least, |filling, at| filling.run(*items).in_item(at))?;
                lists.iter().try_for_each(|&list| self.columns.append_list(list))
            }
            Op::Map { maps, values, least } => {
                self.blocks(*least, |filling, _| filling.entry(maps, *values))?;
                maps.iter().try_for_each(|&map| self.columns.append_list(map))
            }
            _ => unreachable!("only these have an inside"),
        }
    }

    /// Do *item* with the number of each item.
    fn blocks(&mut self, least: usize, mut item: impl FnMut(&mut Self, usize) -> Checked<()>) -> Checked<()> {
        let mut at = 0;
        loop {
            let block = self.cursor.block(least)?;
            for _ in 0..block.items {
                item(self, at)?;
                at += 1;
            }
            block.close(&self.cursor)?;
            if block.items == 0 {
                return Ok(());
            }
        }
    }

    fn entry(&mut self, maps: &[usize], values: usize) -> Checked<()> {
        let key = self.cursor.string()?;
        for &map in maps {
            let entries = self.columns.inside(map);
            self.columns.append(self.columns.inside(entries), Scalar::Bytes(key.as_bytes()))?;
            self.columns.append_struct(entries);
        }
        self.run(values).in_item(key)
    }

    fn append_real(&mut self, into: &[usize], real: f64) -> Checked<()> {
        into.iter().try_for_each(|&builder| self.columns.append(builder, Scalar::Real(real)))
    }

    fn scalar(&mut self, node: usize, into: &[Target]) -> Checked<()> {
        let start = self.cursor.at;
        let scalar = self.read(node)?;
        self.append(scalar, into).inspect_err(|_| self.cursor.at = start)
    }

    fn append(&mut self, scalar: Scalar, into: &[Target]) -> Checked<()> {
        into.iter().try_for_each(|target| {
            let value = self.fitted(scalar, target)?;
            self.columns.append(target.builder, value)
        })
    }

    /// The value in the units of its column.
    fn fitted<'b>(&self, scalar: Scalar<'b>, target: &Target) -> Checked<Scalar<'b>> {
        match (scalar, self.columns.data_type(target.builder)) {
            (Scalar::Bytes(bytes), DataType::Decimal128(precision, _)) => decimal(bytes)
                .filter(|digits| digits.unsigned_abs() < 10_u128.pow((*precision).into()))
                .map(Scalar::Decimal)
                .ok_or_else(|| Error::new(format!("a decimal of more than {precision} digits"))),
            (Scalar::Integer(value), _) if target.times != target.over => {
                let whole = value.checked_mul(target.times).filter(|many| many % target.over == 0);
                let whole = whole
                    .ok_or_else(|| Error::new(format!("the time {value} has no place in its column")))?;
                Ok(Scalar::Integer(whole / target.over))
            }
            (Scalar::Real(value), DataType::Timestamp(..)) => {
                self.fitted(Scalar::Integer(value.round_ties_even() as i64), target)
            }
            (Scalar::Integer(value), DataType::Float32 | DataType::Float64) => Ok(Scalar::Real(value as f64)),
            _ => Ok(scalar),
        }
    }

    fn read(&mut self, node: usize) -> Checked<Scalar<'a>> {
        let cursor = &mut self.cursor;
        Ok(match self.plan.kind(node) {
            Kind::Boolean => Scalar::Boolean(cursor.boolean()?),
            Kind::Int { r#as } if ReadAs::is_real(*r#as) => Scalar::Real(cursor.int()?.into()),
            Kind::Long { r#as } if ReadAs::is_real(*r#as) => Scalar::Real(cursor.long()? as f64),
            Kind::Int { .. } => Scalar::Integer(cursor.int()?.into()),
            Kind::Long { .. } => Scalar::Integer(cursor.long()?),
            Kind::Float => Scalar::Real(cursor.float()?.into()),
            Kind::Double => Scalar::Real(cursor.double()?),
            Kind::Bytes { r#as: Some(ReadAs::String) } | Kind::String { .. } => {
                Scalar::Bytes(cursor.string()?.as_bytes())
            }
            Kind::Bytes { .. } => Scalar::Bytes(cursor.bytes()?),
            Kind::Fixed { size } => Scalar::Bytes(cursor.take(*size)?),
            Kind::Enum { symbols, writer_symbols } => {
                let start = cursor.at;
                let at = cursor.index(symbols.len(), "symbol")?;
                let unknown = || {
                    Error::new(format!(
                        "the reader knows no symbol {}",
                        writers_name(writer_symbols.as_deref(), at)
                    ))
                };
                let symbol = symbols[at].as_ref().ok_or_else(unknown).inspect_err(|_| cursor.at = start)?;
                Scalar::Bytes(symbol.as_bytes())
            }
            _ => unreachable!("compiled as no scalar"),
        })
    }

    /// The number that *node* reads, or None for null.
    fn real(&mut self, node: usize) -> Checked<Option<f64>> {
        match self.plan.kind(node) {
            Kind::Null => Ok(None),
            Kind::Nan => Ok(Some(f64::NAN)),
            Kind::Union { branches } => {
                let chosen = self.cursor.index(branches.len(), "branch")?;
                self.real(branches[chosen])
            }
            Kind::Scale { of, factor, offset } => Ok(self.real(*of)?.map(|real| real * factor + offset)),
            Kind::Refuse { why, of } => {
                let start = self.cursor.at;
                skip(self.plan, *of, &mut self.cursor)?;
                self.cursor.at = start;
                Err(Error::new(why))
            }
            Kind::Int { .. } | Kind::Long { .. } | Kind::Float | Kind::Double => match self.read(node)? {
                Scalar::Integer(value) => Ok(Some(value as f64)),
                Scalar::Real(value) => Ok(Some(value)),
                _ => unreachable!("these are numbers"),
            },
            _ => Err(Error::new("not a number")),
        }
    }
}
