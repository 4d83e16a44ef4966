//! Reading Avro's primitives from bytes that nobody vouches for.

use crate::error::{Checked, Error};

/// Items that take no bytes (nulls, empty records) which one body may hold: nothing else bounds
/// their number.
const MAX_EMPTY_ITEMS: usize = 1 << 20;

/// Levels of records, arrays and maps inside each other.
pub const MAX_DEPTH: usize = 200;

/// A position in a body.
pub struct Cursor<'a> {
    pub body: &'a [u8],
    pub at: usize,
    empty_items_left: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(body: &'a [u8]) -> Self {
        Cursor { body, at: 0, empty_items_left: MAX_EMPTY_ITEMS, depth: 0 }
    }

    pub fn left(&self) -> usize {
        self.body.len() - self.at
    }

    #[inline]
    pub fn take(&mut self, size: usize) -> Checked<&'a [u8]> {
        if size > self.left() {
            return Err(self.short(size));
        }
        let taken = &self.body[self.at..self.at + size];
        self.at += size;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Checked<[u8; N]> {
        match self.body.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.short(N)),
        }
    }

    #[cold]
    fn short(&self, size: usize) -> Box<Error> {
        Error::new(format!("{size} bytes wanted, {} left", self.left()))
    }

    #[inline]
    pub fn boolean(&mut self) -> Checked<bool> {
        match self.array::<1>()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(self.back(self.at - 1, format!("{other} is no boolean"))),
        }
    }

    #[inline]
    pub fn float(&mut self) -> Checked<f32> {
        self.array().map(f32::from_le_bytes)
    }

    #[inline]
    pub fn double(&mut self) -> Checked<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// A zigzag varint of at most 64 bits.
    #[inline]
    pub fn long(&mut self) -> Checked<i64> {
        match self.body.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(zigzag(u64::from(byte)))
            }
            _ => self.long_of_many_bytes(),
        }
    }

    fn long_of_many_bytes(&mut self) -> Checked<i64> {
        let mut bits = 0;
        for (place, &byte) in self.body[self.at..].iter().take(10).enumerate() {
            bits |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                if place == 9 && byte > 1 {
                    break;
                }
                self.at += place + 1;
                return Ok(zigzag(bits));
            }
        }
        Err(if self.left() < 10 {
            self.short(self.left() + 1)
        } else {
            Error::new("an integer over 64 bits")
        })
    }

    #[inline]
    pub fn int(&mut self) -> Checked<i32> {
        let start = self.at;
        let value = self.long()?;
        i32::try_from(value).map_err(|_| {
            self.at = start;
            Error::new(format!("{value} is no integer of 32 bits"))
        })
    }

    #[inline]
    pub fn bytes(&mut self) -> Checked<&'a [u8]> {
        let start = self.at;
        let length = self.long()?;
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        if size > self.left() {
            let left = self.left();
            self.at = start;
            return Err(Error::new(format!("a length of {length}, {left} bytes left")));
        }
        self.take(size)
    }

    #[inline]
    pub fn string(&mut self) -> Checked<&'a str> {
        let start = self.at;
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|error| {
            self.at = start;
            Error::new(format!("not UTF-8: {error}"))
        })
    }

    /// The index of a union's branch or an enum's symbol.
    #[inline]
    pub fn index(&mut self, count: usize, what: &str) -> Checked<usize> {
        let start = self.at;
        let value = self.long()?;
        match usize::try_from(value) {
            Ok(index) if index < count => Ok(index),
            _ => {
                self.at = start;
                Err(Error::new(format!("there is no {what} {value}, only {count}")))
            }
        }
    }

    /// The next block of an array or map whose items take *least* bytes or more each.
    pub fn block(&mut self, least: usize) -> Checked<Block> {
        let start = self.at;
        let count = self.long()?;
        let size = if count < 0 { Some(self.long()?) } else { None };
        let end = match size.map(usize::try_from) {
            None => None,
            Some(Ok(size)) if size <= self.left() => Some(self.at + size),
            Some(_) => return Err(self.back(start, "a block longer than what is left".into())),
        };
        let items = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match self.room_for(items, least) {
            true => Ok(Block { items, end }),
            false => Err(self.back(start, format!("{items} items, {} bytes left", self.left()))),
        }
    }

    fn room_for(&mut self, items: usize, least: usize) -> bool {
        if let Some(room) = self.left().checked_div(least) {
            return items <= room;
        }
        let fits = items <= self.empty_items_left;
        self.empty_items_left -= if fits { items } else { 0 };
        fits
    }

    fn back(&mut self, start: usize, why: String) -> Box<Error> {
        self.at = start;
        Error::new(why)
    }

    /// Go one level deeper; `leave` comes back, but on errors, which end it all.
    #[inline]
    pub fn enter(&mut self) -> Checked<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            Err(Error::new(format!("nested deeper than {MAX_DEPTH} levels")))
        } else {
            Ok(())
        }
    }

    #[inline]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// Some items of an array or map; the last block has none.
pub struct Block {
    pub items: usize,
    end: Option<usize>,
}

impl Block {
    /// Refuse a block whose writer said another size than it has.
    pub fn close(&self, cursor: &Cursor) -> Checked<()> {
        match self.end {
            Some(end) if end != cursor.at => Err(Error::new(format!("the block should end at byte {end}"))),
            _ => Ok(()),
        }
    }

    /// Jump over the block, if its writer said how.
    pub fn jump(&self, cursor: &mut Cursor) -> bool {
        if let Some(end) = self.end {
            cursor.at = end;
        }
        self.end.is_some()
    }
}

fn zigzag(bits: u64) -> i64 {
    (bits >> 1) as i64 ^ -((bits & 1) as i64)
}
