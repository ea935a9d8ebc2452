//! What clients get of stored batches: the columns that they asked for, each as its delivery type.
//!
//! Columns that are delivered as they are stored lie on the stored bytes, without a copy. If all columns are delivered
//! so, whole batches go out byte for byte. The others are rebuilt value by value, under the settings that
//! `PinnedSettings` fixes, so that every session gets the same bytes.

use std::hash::Hash;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, make_array};
use arrow_cache_core::shown;
use arrow_cache_core::{ExportOptions, HashBuffer, OutOfMemory, Reason, RoomyVec, shown_list};
use arrow_schema::{Schema, SchemaRef};
use pgrx::pg_sys;

use super::convert::deliver;
use super::delivery_type::{DeliveryType, PartBudget};
use super::pinned_settings::PinnedSettings;
use super::stored_column::{Problem, StoredColumn, in_context_of_its_own};
use super::{facts, schema, text_output};
use crate::arrow::chunk::Chunk;
use crate::arrow::column::Column;
use crate::error::CacheError;
use crate::pg::row_type::RowType;

/// One column that is delivered.
struct Wanted {
    /// Its number among the stored ones.
    index: usize,
    column: Column,
    delivered: DeliveryType,
    name: String,
}

/// What a column is delivered as, to be shown to people.
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its PostgreSQL type.
    pub type_oid: pg_sys::Oid,
    /// Its Arrow type.
    pub arrow_type: String,
    /// It goes out as it is stored.
    pub zero_copy: bool,
    /// What a user should know of it.
    pub note: Option<String>,
}

/// Turns stored batches into those that a client gets.
pub struct Delivery {
    stored: Vec<Column>,
    wanted: Vec<Wanted>,
    schema: SchemaRef,
}

impl Delivery {
    /// Prepares the delivery of rows of this type, which has these columns. Depends on the type and the options alone.
    ///
    /// # Errors
    /// A column that is not there, or that the options cannot deliver.
    pub fn new(row_type: RowType<'_>, columns: &[Column], options: &ExportOptions) -> Result<Self, CacheError> {
        let names: Vec<String> = row_type.attributes().map(|attribute| text_output::name(&attribute.attname)).collect();
        let indexes = match &options.columns {
            None => (0..columns.len()).collect(),
            Some(wanted) => wanted.iter().map(|name| position(&names, name)).collect::<Result<Vec<_>, _>>()?,
        };
        let mut budget = PartBudget::WHOLE;
        let wanted = indexes
            .into_iter()
            .map(|index| {
                let column = columns[index];
                let delivered = DeliveryType::of_column(&column, &options.profile, &mut budget)
                    .map_err(|digits| CacheError::undeliverable_column(names[index].clone(), digits))?;
                Ok(Wanted { index, column, delivered, name: names[index].clone() })
            })
            .collect::<Result<Vec<_>, CacheError>>()?;
        let field = |wanted: &Wanted| wanted.delivered.field(&wanted.name, &wanted.column, &options.profile);
        let fields: Vec<_> = wanted.iter().map(field).collect();
        Ok(Self { stored: columns.to_vec(), wanted, schema: Arc::new(Schema::new(fields)) })
    }

    /// The schema of what is delivered.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The message of the schema.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn schema_message(&self) -> Result<Vec<u8>, OutOfMemory> {
        schema::message(&self.schema)
    }

    /// What each column is delivered as.
    pub fn describe(&self) -> Vec<Description> {
        let describe = |wanted: &Wanted| Description {
            name: wanted.name.clone(),
            type_oid: wanted.column.type_oid,
            arrow_type: schema::without_metadata(&wanted.delivered.data_type()).to_string(),
            zero_copy: wanted.delivered.is_stored(),
            note: wanted.delivered.note(),
        };
        self.wanted.iter().map(describe).collect()
    }

    /// Returns true if stored batches go out byte for byte.
    pub fn is_verbatim(&self) -> bool {
        let in_order = self.wanted.iter().enumerate().all(|(position, wanted)| wanted.index == position);
        in_order && self.wanted.len() == self.stored.len() && self.converts_nothing()
    }

    /// Returns true if all columns are delivered as they are stored.
    pub fn converts_nothing(&self) -> bool {
        self.wanted.iter().all(|wanted| wanted.delivered.is_stored())
    }

    /// Adds what decides on the bytes that are delivered, beside the stored ones. False if something else decides, too.
    pub fn add_facts(&self, facts: &mut HashBuffer) -> bool {
        self.wanted.iter().all(|wanted| {
            (wanted.index, wanted.column, &wanted.delivered).hash(facts);
            facts::are_all(&wanted.column, &wanted.delivered)
        })
    }

    /// The first `rows` rows of a stored batch, or more, of which `before` rows came before.
    ///
    /// # Errors
    /// The first value that cannot be delivered, by its column and row.
    ///
    /// # Safety
    /// What is made of the chunk must go before it.
    pub unsafe fn batch(&self, chunk: Chunk<'_>, rows: usize, before: u64) -> Result<RecordBatch, CacheError> {
        let _headroom = schema::headroom_of(&self.schema)?;
        let is_plain = self.converts_nothing() && !chunk.has_unrepresentable();
        let pinned = if is_plain { None } else { Some(PinnedSettings::enter()?) };
        let mut arrays = Vec::with_room(self.wanted.len())?;
        for wanted in &self.wanted {
            // SAFETY: the caller's promise.
            let stored = unsafe { StoredColumn::of(&self.stored, wanted.index, chunk, Arc::new(()))? };
            let array = in_context_of_its_own(|| deliver(&stored, rows, &wanted.delivered));
            let array = array.map_err(|problem| match problem {
                Problem::Value(row, problem) => {
                    CacheError::undeliverable_value(&wanted.name, before + row as u64 + 1, problem)
                }
                Problem::Result(reason) => CacheError::undeliverable(reason),
            })?;
            arrays.add(make_array(array))?;
        }
        if let Some(pinned) = pinned {
            pinned.leave();
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options);
        batch.map_err(|_| CacheError::undeliverable(Reason::UnsupportedType))
    }
}

/// The number of the one column with this name.
fn position(names: &[String], wanted: &str) -> Result<usize, CacheError> {
    let mut found = names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(index, _)| index);
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (first, _) => Err(CacheError::no_such_column(
            shown(wanted.as_bytes()),
            first.is_some(),
            shown_list(names.iter().map(String::as_str)),
        )),
    }
}
