//! What a reader asks the page for, in the query of its URL.
//!
//! A key or a value that is not known is ignored, so that an old link shows something.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// A column of the table by which its rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortColumn {
    /// The number of the actor or, in groups, that of its actors.
    Id,
    Name,
    State,
    Mailbox,
    Highest,
    Wait,
    Messages,
    Rate,
    Turns,
    Busy,
    Longest,
    Restarts,
    Displaced,
}

impl SortColumn {
    /// All columns in the order of the page, with their words in the query.
    pub(super) const ALL: [(SortColumn, &'static str); 13] = [
        (SortColumn::Id, "id"),
        (SortColumn::Name, "name"),
        (SortColumn::State, "state"),
        (SortColumn::Mailbox, "mailbox"),
        (SortColumn::Highest, "highest"),
        (SortColumn::Wait, "wait"),
        (SortColumn::Messages, "messages"),
        (SortColumn::Rate, "rate"),
        (SortColumn::Turns, "turns"),
        (SortColumn::Busy, "busy"),
        (SortColumn::Longest, "longest"),
        (SortColumn::Restarts, "restarts"),
        (SortColumn::Displaced, "displaced"),
    ];

    fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(column, _)| *column == self);
        found.map_or("", |(_, word)| word)
    }

    fn of_word(word: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, other)| *other == word);
        found.map(|(column, _)| *column)
    }
}

/// What the page is to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageQuery {
    pub(super) sort: SortColumn,
    /// The least or the first comes first.
    pub(super) is_ascending: bool,
    /// A part of the names that are shown. All have the empty one.
    pub(super) filter: String,
    /// Actors of a name are one row.
    pub(super) is_grouped: bool,
    /// Each actor is below its parent, if actors are not grouped.
    pub(super) is_tree: bool,
    /// The page does not refresh itself.
    pub(super) is_paused: bool,
    /// The actor that is shown alone.
    pub(super) id: Option<u64>,
}

impl Default for PageQuery {
    fn default() -> Self {
        PageQuery {
            sort: SortColumn::Busy,
            is_ascending: false,
            filter: String::new(),
            is_grouped: false,
            is_tree: false,
            is_paused: false,
            id: None,
        }
    }
}

impl PageQuery {
    /// Reads a query such as `sort=messages&filter=cart&group=1`.
    pub(super) fn of(query: &str) -> Self {
        let (mut page, mut order) = (PageQuery::default(), None);
        for field in query.split('&') {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8_lossy();
            match key {
                "sort" => page.sort = SortColumn::of_word(&value).unwrap_or(page.sort),
                "order" if value == "asc" => order = Some(true),
                "order" if value == "desc" => order = Some(false),
                "filter" => page.filter = value.into_owned(),
                "group" => page.is_grouped = value == "1",
                "tree" => page.is_tree = value == "1" || value.is_empty(),
                "pause" => page.is_paused = value == "1",
                "id" => page.id = value.parse().ok(),
                _ => {}
            }
        }
        page.is_tree &= !page.is_grouped;
        page.is_ascending = order.unwrap_or(page.ascends());
        page
    }

    /// Returns whether the column that sorts begins with the least unless a reader wants it otherwise.
    fn ascends(&self) -> bool {
        match self.sort {
            SortColumn::Id => !self.is_grouped,
            SortColumn::Name => true,
            _ => false,
        }
    }

    /// Returns the query that sorts by a column: the other way round if this one does.
    pub(super) fn sorted_by(&self, sort: SortColumn) -> Self {
        let mut other = PageQuery {
            sort,
            ..self.clone()
        };
        other.is_ascending = match self.sort == sort {
            true => !self.is_ascending,
            false => other.ascends(),
        };
        other
    }

    /// Returns the query that shows the actors of a name, each in its row.
    pub(super) fn members(&self, name: &str) -> Self {
        PageQuery {
            filter: name.to_owned(),
            ..self.grouped(false)
        }
    }

    /// Returns the query that has groups, or no more.
    pub(super) fn grouped(&self, is_grouped: bool) -> Self {
        let mut other = PageQuery {
            is_grouped,
            is_tree: self.is_tree && !is_grouped,
            ..self.clone()
        };
        if self.is_ascending == self.ascends() {
            other.is_ascending = other.ascends();
        }
        other
    }

    /// Returns the query that has each actor below its parent, or no more.
    pub(super) fn tree(&self, is_tree: bool) -> Self {
        PageQuery {
            is_tree,
            ..self.grouped(false)
        }
    }

    /// Returns a link to what the query shows, for an attribute of the page.
    pub(super) fn link(&self) -> String {
        let mut fields = Vec::new();
        if self.sort != PageQuery::default().sort {
            fields.push(format!("sort={}", self.sort.word()));
        }
        if self.is_ascending != self.ascends() {
            let order = if self.is_ascending { "asc" } else { "desc" };
            fields.push(format!("order={order}"));
        }
        if !self.filter.is_empty() {
            let filter = utf8_percent_encode(&self.filter, NON_ALPHANUMERIC);
            fields.push(format!("filter={filter}"));
        }
        let flags = [
            ("group", self.is_grouped),
            ("tree", self.is_tree),
            ("pause", self.is_paused),
        ];
        for (key, is_set) in flags {
            if is_set {
                fields.push(format!("{key}=1"));
            }
        }
        if let Some(id) = self.id {
            fields.push(format!("id={id}"));
        }
        // Relative to the page, so that it also works behind a proxy that serves it elsewhere.
        format!("?{}", fields.join("&amp;"))
    }

    /// Returns the fields of a form that changes the filter alone, with their values.
    pub(super) fn hidden(&self) -> Vec<(&'static str, &'static str)> {
        let mut fields = vec![("sort", self.sort.word())];
        let order = if self.is_ascending { "asc" } else { "desc" };
        fields.push(("order", order));
        if self.is_grouped {
            fields.push(("group", "1"));
        }
        if self.is_tree {
            fields.push(("tree", "1"));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_how_the_page_sorts_filters_and_groups() {
        let page = PageQuery::of("sort=messages&filter=cart+%C3%A9&group=1");
        assert_eq!(page.sort, SortColumn::Messages);
        assert_eq!(
            (&*page.filter, page.is_grouped, page.is_ascending),
            ("cart é", true, false)
        );
        assert!(PageQuery::of("sort=name").is_ascending);
        assert!(!PageQuery::of("sort=name&order=desc").is_ascending);
        // The order may come first.
        assert!(PageQuery::of("order=asc&sort=messages").is_ascending);
        assert_eq!(PageQuery::of("id=17").id, Some(17));
        assert!(PageQuery::of("tree").is_tree && !PageQuery::of("tree=1&group=1").is_tree);
    }

    #[test]
    fn what_is_unknown_in_a_query_is_ignored() {
        let odd = "sort=nothing&order=up&group=yes&pause=&id=-1&more=1&&=&sort&%FF=%FF";
        assert_eq!(PageQuery::of(odd), PageQuery::default());
        assert_eq!(PageQuery::of(""), PageQuery::default());
        assert_eq!(PageQuery::of("filter=%FF%00").filter, "\u{FFFD}\0");
    }

    #[test]
    fn a_link_leads_to_what_the_query_shows() {
        let queries = [
            "",
            "sort=name",
            "sort=name&order=desc",
            "sort=id&group=1",
            "sort=id&group=1&order=asc",
            "filter=%22%3Cscript%3E%26a%3D%2B1&group=1&pause=1",
            "sort=name&tree=1&pause=1",
            "id=17",
        ];
        for query in queries {
            let page = PageQuery::of(query);
            let link = page.link();
            assert!(!link.contains(['<', '"', '>']), "{link}");
            let link = link[1..].replace("&amp;", "&");
            assert_eq!(PageQuery::of(&link), page, "{query}");
        }
        assert_eq!(PageQuery::default().link(), "?");
    }

    #[test]
    fn the_column_that_sorts_turns_round_and_another_one_begins_anew() {
        let page = PageQuery::of("sort=messages&filter=a");
        assert_eq!(
            page.sorted_by(SortColumn::Messages).link(),
            "?sort=messages&amp;order=asc&amp;filter=a"
        );
        let name = page.sorted_by(SortColumn::Name);
        assert_eq!(name.link(), "?sort=name&amp;filter=a");
        assert!(name.is_ascending);
        let ids = PageQuery::of("sort=id");
        assert!(!ids.grouped(true).is_ascending);
        assert_eq!(ids.members("b").link(), "?sort=id&amp;filter=b");
        let tree = ids.tree(true);
        assert_eq!(tree.link(), "?sort=id&amp;tree=1");
        assert!(!tree.grouped(true).is_tree && !tree.tree(false).is_tree);
        let groups = ids.grouped(true);
        assert_eq!(groups.members("b").link(), "?sort=id&amp;filter=b");
    }

    #[test]
    fn all_columns_have_words_of_their_own() {
        for (column, word) in SortColumn::ALL {
            assert_eq!(
                (SortColumn::of_word(word), column.word()),
                (Some(column), word)
            );
        }
    }
}
