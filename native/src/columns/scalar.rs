//! A value on its way into a column.

use std::fmt;

#[derive(Clone, Copy)]
pub enum Scalar<'a> {
    Boolean(bool),
    /// Also a time: how many of the column's units.
    Integer(i64),
    Real(f64),
    /// Also text, whose bytes are UTF-8.
    Bytes(&'a [u8]),
    /// A decimal number's digits without their point.
    Decimal(i128),
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Boolean(value) => write!(f, "{value}"),
            Scalar::Integer(value) => write!(f, "{value}"),
            Scalar::Real(value) => write!(f, "{value}"),
            Scalar::Bytes(value) => write!(f, "a value of {} bytes", value.len()),
            Scalar::Decimal(value) => write!(f, "{value}"),
        }
    }
}

/// The number whose two's complement, most significant byte first, are *bytes*; None if it has over
/// 128 bits.
pub fn decimal(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { -1 } else { 0 };
    let surplus = bytes.len().saturating_sub(16);
    let (high, low) = bytes.split_at(surplus);
    let value = low.iter().fold(sign, |value: i128, &byte| (value << 8) | i128::from(byte));
    let fits = high.iter().all(|&byte| byte == sign as u8) && (value < 0) == (sign < 0);
    fits.then_some(value)
}
