//! The spans of a trace as a tree: one a line, below its parent.

use std::fmt::Write;

use opentelemetry::SpanId;
use opentelemetry_sdk::trace::SpanData;

/// Returns the tree of the trace whose root has this name, or nothing without one. Spans of one parent
/// are in the order in which they began.
pub fn of_trace(root: &str, mut spans: Vec<SpanData>) -> String {
    let is_root = |span: &&SpanData| span.parent_span_id == SpanId::INVALID && span.name == root;
    let trace = spans
        .iter()
        .find(is_root)
        .map(|root| root.span_context.trace_id());
    spans.retain(|span| Some(span.span_context.trace_id()) == trace);
    spans.sort_by_key(|span| span.start_time);
    let mut tree = String::new();
    add_below(SpanId::INVALID, 0, &spans, &mut tree);
    tree
}

fn add_below(parent: SpanId, depth: usize, spans: &[SpanData], tree: &mut String) {
    for span in spans.iter().filter(|span| span.parent_span_id == parent) {
        let _ = writeln!(tree, "{:1$}{2}", "", 2 * depth, span.name);
        add_below(span.span_context.span_id(), depth + 1, spans, tree);
    }
}
