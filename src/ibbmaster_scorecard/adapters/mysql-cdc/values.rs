//! Rows of mysql_cdc as JSON: an object where the table map has names, else a list.

use chrono::DateTime;
use mysql_cdc::events::row_events::mysql_value::{Date, MySqlValue};
use mysql_cdc::events::row_events::row_data::RowData;
use mysql_cdc::events::table_map_event::TableMapEvent;
use serde_json::{json, Map, Value};

const NUMERIC: [u8; 9] = [1, 2, 3, 4, 5, 8, 9, 13, 246]; // column types that have a bit in `signedness`
const STRING: u8 = 254; // ENUM and SET are of this type, their own is in its metadata
const ENUM: u16 = 247;
const SET: u16 = 248;

pub fn image(row: &RowData, present: &[bool], table: &TableMapEvent) -> Value {
    let values: Vec<Value> = (0..row.cells.len()).map(|i| value(&row.cells[i], i, table)).collect();
    let names = table.table_metadata.as_ref().and_then(|metadata| metadata.column_names.as_ref());
    match names {
        None => Value::Array(values),
        Some(names) => {
            let cells = names.iter().zip(values).zip(present).filter(|(_, is_present)| **is_present);
            Value::Object(cells.map(|((name, value), _)| (name.clone(), value)).collect::<Map<_, _>>())
        }
    }
}

fn value(cell: &Option<MySqlValue>, i: usize, table: &TableMapEvent) -> Value {
    let Some(cell) = cell else { return Value::Null };
    let is_unsigned = is_unsigned(table, i);
    match cell {
        MySqlValue::TinyInt(n) if !is_unsigned => json!(*n as i8),
        MySqlValue::TinyInt(n) => json!(n),
        MySqlValue::SmallInt(n) if !is_unsigned => json!(*n as i16),
        MySqlValue::SmallInt(n) => json!(n),
        MySqlValue::MediumInt(n) if !is_unsigned => json!((*n << 8) as i32 >> 8),
        MySqlValue::MediumInt(n) => json!(n),
        MySqlValue::Int(n) if !is_unsigned => json!(*n as i32),
        MySqlValue::Int(n) => json!(n),
        MySqlValue::BigInt(n) if !is_unsigned => json!(*n as i64),
        MySqlValue::BigInt(n) => json!(n),
        MySqlValue::Float(n) => json!(n.to_string().parse::<f64>().unwrap_or_default()), // its shortest digits
        MySqlValue::Double(n) => json!(n),
        MySqlValue::Decimal(text) | MySqlValue::String(text) => json!(text),
        MySqlValue::Bit(bits) => json!(bits.iter().rev().fold(0u64, |number, bit| number << 1 | *bit as u64)),
        MySqlValue::Enum(index) => enum_name(*index, i, table),
        MySqlValue::Set(bits) => set_names(*bits, i, table),
        MySqlValue::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!(format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())),
        },
        MySqlValue::Year(0 | 1900) => json!(0),
        MySqlValue::Year(year) => json!(year),
        MySqlValue::Date(date) => json!(day(date)),
        MySqlValue::Time(t) => {
            json!(format!("{:02}:{:02}:{:02}{}", t.hour, t.minute, t.second, fraction(t.millis, i, table)))
        }
        MySqlValue::DateTime(t) => {
            let date = day(&Date { year: t.year, month: t.month, day: t.day });
            json!(format!("{date} {:02}:{:02}:{:02}{}", t.hour, t.minute, t.second, fraction(t.millis, i, table)))
        }
        MySqlValue::Timestamp(millis) => json!(moment(*millis) + &fraction((millis % 1000) as u32, i, table)),
    }
}

/// A column's part of a list that has one for each column of its kind.
fn own<T>(list: &Option<Vec<T>>, i: usize, is_kind: impl Fn(usize) -> bool) -> Option<&T> {
    list.as_ref()?.get((0..i).filter(|&before| is_kind(before)).count())
}

fn is_unsigned(table: &TableMapEvent, i: usize) -> bool {
    let Some(metadata) = &table.table_metadata else { return false };
    let is_numeric = |i: usize| NUMERIC.contains(&table.column_types[i]);
    own(&metadata.signedness, i, is_numeric).copied().unwrap_or(false)
}

fn enum_name(index: u32, i: usize, table: &TableMapEvent) -> Value {
    let names = table.table_metadata.as_ref();
    let names = names.and_then(|metadata| own(&metadata.enum_string_values, i, |i| is_string(table, i, ENUM)));
    match names {
        None => json!(index),
        Some(names) => json!(names.get((index as usize).wrapping_sub(1)).map_or("", String::as_str)),
    }
}

fn set_names(bits: u64, i: usize, table: &TableMapEvent) -> Value {
    let names = table.table_metadata.as_ref();
    let names = names.and_then(|metadata| own(&metadata.set_string_values, i, |i| is_string(table, i, SET)));
    let Some(names) = names else { return json!(bits) };
    let chosen: Vec<&str> =
        (0..names.len()).filter(|bit| bits >> bit & 1 == 1).map(|bit| names[bit].as_str()).collect();
    json!(chosen.join(","))
}

fn is_string(table: &TableMapEvent, i: usize, real_type: u16) -> bool {
    table.column_types[i] == STRING && table.column_metadata[i] >> 8 == real_type
}

fn day(date: &Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

/// As many digits as the column has; the library knows three of them.
fn fraction(millis: u32, i: usize, table: &TableMapEvent) -> String {
    match table.column_metadata[i] as usize {
        0 => String::new(),
        digits => format!(".{}", &format!("{millis:03}000")[..digits.min(6)]),
    }
}

fn moment(millis: u64) -> String {
    match DateTime::from_timestamp_millis(millis as i64) {
        Some(moment) if millis > 0 => moment.format("%Y-%m-%d %H:%M:%S").to_string(),
        _ => "0000-00-00 00:00:00".to_string(),
    }
}
