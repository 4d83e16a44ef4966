//! Stepping over values that nobody asked for.

use crate::cursor::Cursor;
use crate::fault::{Checked, Located};
use crate::plan::{Kind, Plan};

/// Step over one value of *node*, looking at no more of it than its end takes to find.
#[inline]
pub fn skip(plan: &Plan, node: usize, cursor: &mut Cursor) -> Checked<()> {
    match plan.sizes[node] {
        Some(size) => cursor.take(size).map(drop),
        None => skip_variable(plan, node, cursor),
    }
}

fn skip_variable(plan: &Plan, node: usize, cursor: &mut Cursor) -> Checked<()> {
    match plan.kind(node) {
        Kind::Union { branches } => {
            let chosen = cursor.index(branches.len(), "branch")?;
            skip(plan, branches[chosen], cursor)
        }
        Kind::Int { .. } | Kind::Long { .. } | Kind::Enum { .. } => cursor.long().map(drop),
        Kind::Bytes { .. } | Kind::String { .. } => cursor.bytes().map(drop),
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
