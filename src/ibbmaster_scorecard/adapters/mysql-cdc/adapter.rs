//! Follows a primary with mysql_cdc. It does not reconnect: its first error, or the end of its events, ends this
//! program, which goes on where it was when it is started again.

mod values;

use mysql_cdc::binlog_client::BinlogClient;
use mysql_cdc::binlog_options::BinlogOptions;
use mysql_cdc::errors::Error;
use mysql_cdc::events::binlog_event::BinlogEvent;
use mysql_cdc::events::event_type::EventType;
use mysql_cdc::events::row_events::row_data::RowData;
use mysql_cdc::events::table_map_event::TableMapEvent;
use mysql_cdc::providers::mariadb::gtid::gtid_list::GtidList;
use mysql_cdc::replica_options::ReplicaOptions;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

const STANDALONE: u8 = 1; // of a GTID event: the group is one statement, and has no XID

fn main() {
    say(json!({"event": "version", "text": "mysql_cdc 0.2.1, Rust"}));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).expect("a line on stdin");
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        std::process::exit(0);
    });
    let given: Value = serde_json::from_str(&line).expect("JSON on stdin");
    let (text, is_internal) = match std::panic::catch_unwind(|| follow(&given)) {
        Ok(Ok(())) => ("the iterator of events has ended".to_string(), false),
        Ok(Err(Error::String(text))) => (text, false),
        Ok(Err(error)) => (format!("{error:?}"), false),
        Err(panic) => (message(panic), true),
    };
    say(json!({"event": "error", "text": text, "is_fatal": true, "is_internal": is_internal}));
    std::process::exit(1);
}

fn follow(given: &Value) -> Result<(), Error> {
    if given["tls"] == true {
        return Err(Error::String("mysql_cdc does not support SSL encryption".into()));
        // as its README says
    }
    let start = given["resume"].as_str().or(given["start"].as_str()).unwrap_or("");
    let mut client = BinlogClient::new(ReplicaOptions {
        hostname: text(given, "host"),
        port: given["port"].as_u64().unwrap_or(0) as u16,
        username: text(given, "user"),
        password: text(given, "password"),
        server_id: given["server_id"].as_u64().unwrap_or(0) as u32,
        heartbeat_interval: Duration::from_secs(1),
        binlog: BinlogOptions::from_mariadb_gtid(GtidList::parse(start)?),
        ..Default::default()
    });
    let delay = Duration::from_millis(given["delay_ms"].as_u64().unwrap_or(0));
    let mut tables = HashMap::new();
    let (mut gtid, mut is_standalone) = (String::new(), false);
    let mut events = client.replicate()?;
    loop {
        std::thread::sleep(delay);
        let Some(result) = events.next() else { return Ok(()) };
        let (header, event) = result?;
        let mut is_end = false;
        match &event {
            BinlogEvent::MariaDbGtidEvent(begin) => {
                (gtid, is_standalone) = (begin.gtid.to_string(), begin.flags & STANDALONE != 0);
                say(json!({"event": "begin", "gtid": gtid}));
            }
            BinlogEvent::TableMapEvent(table) => {
                if given["tables"] == true {
                    say_table(table);
                }
                tables.insert(table.table_id, table.clone());
            }
            BinlogEvent::WriteRowsEvent(rows) => {
                for row in &rows.rows {
                    say_change(&tables[&rows.table_id], "insert", None, Some((row, &rows.columns_present)));
                }
            }
            BinlogEvent::DeleteRowsEvent(rows) => {
                for row in &rows.rows {
                    say_change(&tables[&rows.table_id], "delete", Some((row, &rows.columns_present)), None);
                }
            }
            BinlogEvent::UpdateRowsEvent(rows) => {
                for row in &rows.rows {
                    let before = (&row.before_update, &rows.columns_before_update);
                    let after = (&row.after_update, &rows.columns_after_update);
                    say_change(&tables[&rows.table_id], "update", Some(before), Some(after));
                }
            }
            BinlogEvent::QueryEvent(query) => {
                let sql = &query.sql_statement;
                let is_last = sql == "COMMIT" || sql == "ROLLBACK";
                if !is_last {
                    say(json!({"event": "statement", "sql": sql}));
                }
                is_end = is_last || is_standalone || sql.starts_with("XA COMMIT") || sql.starts_with("XA ROLLBACK");
            }
            BinlogEvent::XidEvent(_) => is_end = true,
            BinlogEvent::UnknownEvent => match EventType::from_code(header.event_type) {
                EventType::MySqlXaPrepare => is_end = true,
                EventType::Unknown => say(json!({"event": "unknown", "text": format!("type {}", header.event_type)})),
                _ => (),
            },
            _ => (),
        }
        client.commit(&header, &event); // its own way to keep a position, after the event was processed
        if is_end {
            let position = client.options.binlog.gtid_list.as_ref().map(GtidList::to_string);
            say(json!({"event": "commit", "gtid": gtid}));
            say(json!({"event": "position", "position": position}));
        }
    }
}

fn say_table(table: &TableMapEvent) {
    let name = format!("{}.{}", table.database_name, table.table_name);
    let metadata = table.table_metadata.as_ref();
    let names = metadata.and_then(|metadata| metadata.column_names.as_ref());
    let key = metadata.zip(names).map(|(metadata, names)| {
        let simple = metadata.simple_primary_keys.clone().unwrap_or_default().into_iter();
        let with_prefix = metadata.primary_keys_with_prefix.clone().unwrap_or_default().into_iter();
        let columns = simple.chain(with_prefix.map(|(column, _)| column));
        columns.map(|column| names[column as usize].clone()).collect::<Vec<_>>()
    });
    say(json!({"event": "table", "table": name, "columns": names, "key": key, "types": table.column_types}));
}

type Image<'a> = Option<(&'a RowData, &'a Vec<bool>)>;

fn say_change(table: &TableMapEvent, kind: &str, before: Image, after: Image) {
    let image = |image: Image| image.map(|(row, present)| values::image(row, present, table));
    let name = format!("{}.{}", table.database_name, table.table_name);
    say(json!({"event": "change", "table": name, "kind": kind, "before": image(before), "after": image(after)}));
}

fn say(line: Value) {
    println!("{line}");
    io::stdout().flush().expect("stdout");
}

fn text(given: &Value, key: &str) -> String {
    given[key].as_str().unwrap_or("").to_string()
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}
