//! Stepping over values that nobody asked for.

use crate::cursor::Cursor;
use crate::decode::plan::{Kind, Plan, Stride};
use crate::error::{Checked, Located};

/// Step over one value of *node*, looking at no more of it than its end takes to find.
#[inline]
pub fn skip(plan: &Plan, node: usize, cursor: &mut Cursor) -> Checked<()> {
    match plan.strides[node] {
        Stride::Fixed(size) => cursor.take(size).map(drop),
        Stride::Varint => cursor.long().map(drop),
        Stride::Bytes => cursor.bytes().map(drop),
        Stride::Either(sizes) => {
            let size = sizes[cursor.index(2, "branch")?];
            cursor.take(size).map(drop)
        }
        Stride::Varying => skip_varying(plan, node, cursor),
    }
}

fn skip_varying(plan: &Plan, node: usize, cursor: &mut Cursor) -> Checked<()> {
    match plan.kind(node) {
        Kind::Union { branches } => {
            let chosen = cursor.index(branches.len(), "branch")?;
            skip(plan, branches[chosen], cursor)
        }
        Kind::Refuse { of, .. } | Kind::Scale { of, .. } => skip(plan, *of, cursor),
        _ => {
            cursor.enter()?;
            skip_compound(plan, node, cursor)?;
            cursor.leave();
            Ok(())
        }
    }
}

fn skip_compound(plan: &Plan, node: usize, cursor: &mut Cursor) -> Checked<()> {
    match plan.kind(node) {
        Kind::Record { fields, .. } => fields.iter().try_for_each(|field| {
            skip(plan, field.r#type, cursor).in_field(field.name.as_deref().unwrap_or("?"))
        }),
        Kind::Array { items } => skip_blocks(plan, *items, 0, cursor),
        Kind::Map { values } => skip_blocks(plan, *values, 1, cursor),
        _ => Ok(()),
    }
}

/// Blocks of values, each behind *keys* strings.
fn skip_blocks(plan: &Plan, inner: usize, keys: usize, cursor: &mut Cursor) -> Checked<()> {
    loop {
        let block = cursor.block(plan.least[inner].saturating_add(keys))?;
        if block.items == 0 {
            return block.close(cursor);
        }
        if block.jump(cursor) {
            continue;
        }
        for at in 0..block.items {
            if keys > 0 {
                cursor.bytes()?;
            }
            skip(plan, inner, cursor).in_item(at)?;
        }
    }
}
