//! Reads the edges of a graph from text: lines of two names, or a subset of DOT.
//!
//! A text is DOT when its first word is `strict`, `graph` or `digraph` and it has a brace. Otherwise each line is an
//! edge `a b`, a chain `a -> b -> c` (`--` if edges have no direction), or a vertex `a` alone, and `#` begins a
//! comment. The reader supports chains `a -> b -> c`, sets `a -> {b c}`, quoted names and comments of DOT, and ignores
//! attributes. It refuses subgraphs, ports and HTML, because ignoring them would change the graph.
//!
//! The numbers of vertices and edges are bounded ([`MAX_VERTICES`], [`MAX_EDGES`]), because a short text can mean
//! many edges: `{a b c} -> {d e f}` means nine. A vertex that a set names twice counts once. Tokens are read one by
//! one, so the reader holds only the text, the names and the edges.
//!
//! The parser of petgraph is not used, because it records no lines (an error about a cycle names one) and has an
//! incompatible licence.

use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Maximum number of edges in a text. In the solved graph an edge takes about 100 bytes.
pub const MAX_EDGES: usize = 1 << 22;

/// Maximum number of vertices in a text. In the solved graph a vertex takes about 200 bytes and its name.
pub const MAX_VERTICES: usize = 1 << 21;

/// An edge between two vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// Index of the name of the first vertex, from which a directed edge leads.
    pub from: usize,
    /// Index of the name of the second vertex.
    pub to: usize,
    /// Line of the text, counted from 1.
    pub line: usize,
}

/// What a line of a text without braces may be.
const LINE: &str = "a line is an edge 'a b', a chain 'a -> b -> c', or a vertex 'a'";

/// Whether edges have a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Edges lead from the first vertex to the second; in DOT `digraph` and `->`.
    Directed,
    /// Edges have no direction; in DOT `graph` and `--`.
    Undirected,
}

/// Named vertices and the edges between them, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edges {
    /// The file of the text, for error messages.
    pub path: PathBuf,
    /// The names of the vertices, each once.
    pub names: Vec<String>,
    /// The edges; an edge may occur twice.
    pub edges: Vec<Edge>,
    /// The index of each name in `names`.
    places: HashMap<String, usize>,
}

impl Direction {
    /// The arrow between two vertices.
    fn arrow(self) -> &'static str {
        match self {
            Direction::Directed => "->",
            Direction::Undirected => "--",
        }
    }
}

impl Edges {
    /// Reads a text; errors name it by `path`.
    ///
    /// # Errors
    /// [`Error::Line`] at the first line that has a syntax error, or that needs more than [`MAX_EDGES`] edges or
    /// [`MAX_VERTICES`] vertices.
    ///
    /// ```
    /// use grundy::games::edges::{Direction, Edges};
    /// let lines = Edges::read("x".as_ref(), "a b\nb c # the end\n", Direction::Directed)?;
    /// let dot = Edges::read("x".as_ref(), "digraph { a -> b -> c }", Direction::Directed)?;
    /// assert_eq!((lines.names, lines.edges.len()), (dot.names, dot.edges.len()));
    /// # Ok::<(), grundy::Error>(())
    /// ```
    pub fn read(path: &Path, text: &str, direction: Direction) -> Result<Edges> {
        let mut edges = Edges { path: path.to_owned(), ..Edges::default() };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text); // the byte order mark of some editors
        let first = text.lines().map(str::trim_start).find(|line| !is_comment(line)).unwrap_or("");
        let word: String = first.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        if ["strict", "graph", "digraph"].contains(&word.to_ascii_lowercase().as_str()) && text.contains('{')
            || first.starts_with("/*")
        {
            let mut lexer = Lexer { path, rest: text, line: 1, line_begins: true };
            let tokens = std::iter::from_fn(move || lexer.token().transpose()).peekable();
            Dot { tokens, last: 1, direction, edges: &mut edges }.graph()?;
        } else {
            edges.lines(text, direction)?;
        }
        Ok(edges)
    }

    /// Returns the index of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    fn lines(&mut self, text: &str, direction: Direction) -> Result<()> {
        let arrow = direction.arrow();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default();
            let has_arrow = content.contains(arrow);
            let names: Vec<&str> = if has_arrow {
                content.split(arrow).map(str::trim).collect()
            } else {
                content.split_whitespace().collect()
            };
            if has_arrow && names.iter().any(|name| name.split_whitespace().count() != 1) {
                return Err(self.at(line, format!("not one vertex on each side of '{arrow}'; {LINE}")));
            }
            if let Some(name) = names.iter().find(|name| name.contains("->") || name.contains("--")) {
                let what = format!("an arrow in '{}', where the arrow is '{arrow}'; {LINE}", name.escape_debug());
                return Err(self.at(line, what));
            }
            if !has_arrow && names.len() > 2 {
                return Err(self.at(line, format!("{} words; {LINE}", names.len())));
            }
            let chain: Vec<usize> = names.iter().map(|name| self.vertex(name, line)).collect::<Result<_>>()?;
            for pair in chain.windows(2) {
                self.join(&pair[..1], &pair[1..], line)?;
            }
        }
        Ok(())
    }

    /// Returns the index of a vertex, which is added when its name is new.
    fn vertex(&mut self, name: &str, line: usize) -> Result<usize> {
        if let Some(&place) = self.places.get(name) {
            return Ok(place);
        }
        if self.names.len() == MAX_VERTICES {
            return Err(self.at(line, format!("one vertex too many; a graph has at most {MAX_VERTICES} vertices")));
        }
        self.places.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        Ok(self.names.len() - 1)
    }

    /// Adds an edge from each vertex of one set to each of another.
    fn join(&mut self, from: &[usize], to: &[usize], line: usize) -> Result<()> {
        let added = from.len().saturating_mul(to.len());
        if added > MAX_EDGES - self.edges.len() {
            let (all, each, before) = (from.len(), to.len(), self.edges.len());
            let what = format!("{all} x {each} edges after {before} others; a graph has at most {MAX_EDGES} edges");
            return Err(self.at(line, what));
        }
        for &from in from {
            self.edges.extend(to.iter().map(|&to| Edge { from, to, line }));
        }
        Ok(())
    }

    /// Creates an error about a line of this text.
    pub(super) fn at(&self, line: usize, what: String) -> Error {
        Error::Line { path: self.path.clone(), line, what }
    }
}

fn is_comment(line: &str) -> bool {
    line.is_empty() || line.starts_with('#') || line.starts_with("//")
}

/// A token of DOT.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name without quotes, which may be a keyword.
    Word(String),
    /// A name in quotes.
    Quoted(String),
    /// A brace, an arrow or another of [`MARKS`].
    Mark(&'static str),
}

/// All marks; an arrow comes before every mark that is a prefix of it.
const MARKS: [&str; 9] = ["->", "--", "{", "}", "[", "]", ";", ",", "="];

/// Reads the tokens of a DOT text.
struct Lexer<'a> {
    path: &'a Path,
    /// The text that is not read yet.
    rest: &'a str,
    /// The line in which `rest` begins, counted from 1.
    line: usize,
    /// Whether only blanks precede `rest` in its line.
    line_begins: bool,
}

impl Lexer<'_> {
    /// Reads the next token, and returns it with its line; `None` at the end of the text.
    fn token(&mut self) -> Result<Option<(usize, Token)>> {
        self.skip_blanks()?;
        let (rest, line) = (self.rest, self.line);
        if rest.is_empty() {
            return Ok(None);
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            return Ok(Some((line, self.quoted(quoted)?)));
        }
        if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.rest = &rest[mark.len()..];
            return Ok(Some((line, Token::Mark(mark))));
        }
        Ok(Some((line, self.word()?)))
    }

    fn skip_blanks(&mut self) -> Result<()> {
        while let Some(c) = self.rest.chars().next() {
            let (rest, was_begin) = (self.rest, std::mem::replace(&mut self.line_begins, false));
            if c.is_whitespace() {
                self.line_begins = c == '\n' || was_begin;
                self.line += usize::from(c == '\n');
                self.rest = &rest[c.len_utf8()..];
            } else if rest.starts_with("//") || (c == '#' && was_begin) {
                self.rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let length = comment.find("*/").ok_or_else(|| self.error("a comment that does not end"))?;
                self.line += comment[..length].matches('\n').count();
                self.rest = &comment[length + 2..];
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Reads a name in quotes; `quoted` is the text after the opening quote.
    fn quoted(&mut self, quoted: &str) -> Result<Token> {
        let (mut name, mut escaped, mut end) = (String::new(), false, None);
        for (place, c) in quoted.char_indices() {
            match (escaped, c) {
                (false, '"') => {
                    end = Some(place);
                    break;
                }
                (false, '\\') => escaped = true,
                (true, '"') => (escaped, _) = (false, name.push('"')),
                (true, '\n') => escaped = false,
                (true, c) => (escaped, _) = (false, name.extend(['\\', c])),
                (false, c) => name.push(c),
            }
        }
        let end = end.ok_or_else(|| self.error("a name in quotes that does not end"))?;
        self.line += quoted[..end].matches('\n').count();
        self.rest = &self.rest[end + 2..];
        Ok(Token::Quoted(name))
    }

    /// Reads a name without quotes.
    fn word(&mut self) -> Result<Token> {
        let rest = self.rest;
        let part = |c: char| c.is_alphanumeric() || c == '_';
        // A minus sign and a point are part of numbers only: neither a-b nor a.b is a name.
        let number = rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let length = if number {
            rest[1..].find(|c: char| !(c.is_ascii_digit() || c == '.')).map_or(rest.len(), |end| end + 1)
        } else {
            rest.find(|c| !part(c)).unwrap_or(rest.len())
        };
        if length == 0 {
            let c = rest.chars().next().unwrap_or_default().escape_debug();
            return Err(self.error(&format!("'{c}' is not read here; a name with it stands in quotes")));
        }
        self.rest = &rest[length..];
        if number && self.rest.starts_with(part) {
            return Err(self.error("a name that begins with a digit and is no number; it has to stand in quotes"));
        }
        Ok(Token::Word(rest[..length].to_owned()))
    }

    fn error(&self, what: &str) -> Error {
        Error::Line { path: self.path.to_owned(), line: self.line, what: what.to_owned() }
    }
}

/// Reads the statements of a DOT text.
struct Dot<'a, I: Iterator<Item = Result<(usize, Token)>>> {
    tokens: std::iter::Peekable<I>,
    /// The line of the last token taken.
    last: usize,
    direction: Direction,
    edges: &'a mut Edges,
}

impl<I: Iterator<Item = Result<(usize, Token)>>> Dot<'_, I> {
    fn graph(&mut self) -> Result<()> {
        let arrow = self.direction.arrow();
        let expected = match self.direction {
            Direction::Directed => "digraph",
            Direction::Undirected => "graph",
        };
        if self.peek_keyword("strict") {
            self.next();
        }
        if !self.peek_keyword(expected) {
            return self.unexpected(&format!("'{expected}', with '{arrow}' between vertices"));
        }
        self.next();
        if !self.take("{") {
            self.name("the name of the graph or '{'")?;
            if !self.take("{") {
                return self.unexpected("'{'");
            }
        }
        while !self.take("}") {
            self.statement(arrow)?;
        }
        if self.tokens.peek().is_some() {
            return self.unexpected("nothing after the last '}'");
        }
        Ok(())
    }

    fn statement(&mut self, arrow: &'static str) -> Result<()> {
        if self.take(";") {
            return Ok(());
        }
        if ["node", "edge", "graph"].into_iter().any(|word| self.peek_keyword(word)) {
            self.next();
            return if self.peek_mark("[") { self.attributes() } else { self.unexpected("'[' or quotes") };
        }
        let named = !self.peek_mark("{");
        let name = if named { self.name("a vertex, '{' or '}'")? } else { String::new() };
        if named && self.take("=") {
            return self.name("a value").map(drop);
        }
        let mut from = if named { vec![self.edges.vertex(&name, self.last)?] } else { self.set()? };
        loop {
            if self.take(arrow) {
                let line = self.last;
                let to = if self.peek_mark("{") {
                    self.set()?
                } else {
                    let name = self.name("a vertex or '{'")?;
                    vec![self.edges.vertex(&name, self.last)?]
                };
                self.edges.join(&from, &to, line)?;
                from = to;
            } else if self.peek_mark("->") || self.peek_mark("--") {
                return self.unexpected(&format!("'{arrow}'"));
            } else {
                return self.attributes();
            }
        }
    }

    /// Reads a set `{a b c}`, and returns each vertex once.
    fn set(&mut self) -> Result<Vec<usize>> {
        self.next();
        let (mut vertices, mut seen) = (Vec::new(), HashSet::new());
        while !self.take("}") {
            if !self.take(";") && !self.take(",") {
                let name = self.name("a vertex or '}'")?;
                let vertex = self.edges.vertex(&name, self.last)?;
                if seen.insert(vertex) {
                    vertices.push(vertex);
                }
            }
        }
        Ok(vertices)
    }

    /// Skips lists of attributes `[a = b, …]`.
    fn attributes(&mut self) -> Result<()> {
        while self.take("[") {
            while !self.take("]") {
                self.name("an attribute or ']'")?;
                if self.take("=") {
                    self.name("a value")?;
                }
                let _ = self.take(",") || self.take(";");
            }
        }
        Ok(())
    }

    fn name(&mut self, expected: &str) -> Result<String> {
        match self.tokens.peek() {
            Some(Ok((_, Token::Quoted(_)))) => {}
            Some(Ok((_, Token::Word(word)))) if !word.eq_ignore_ascii_case("subgraph") => {}
            _ => return self.unexpected(expected),
        }
        match self.next() {
            Some(Token::Word(name) | Token::Quoted(name)) => Ok(name),
            _ => self.unexpected(expected),
        }
    }

    fn next(&mut self) -> Option<Token> {
        let (line, token) = self.tokens.next_if(Result::is_ok)?.ok()?;
        self.last = line;
        Some(token)
    }

    fn take(&mut self, mark: &str) -> bool {
        let there = self.peek_mark(mark);
        if there {
            self.next();
        }
        there
    }

    fn peek_mark(&mut self, mark: &str) -> bool {
        matches!(self.tokens.peek(), Some(Ok((_, Token::Mark(found)))) if *found == mark)
    }

    fn peek_keyword(&mut self, word: &str) -> bool {
        matches!(self.tokens.peek(), Some(Ok((_, Token::Word(found)))) if found.eq_ignore_ascii_case(word))
    }

    /// Returns the error for the next token, which is not the expected one, or the lexer's own error.
    fn unexpected<T>(&mut self, expected: &str) -> Result<T> {
        let (line, found) = match self.tokens.next().transpose()? {
            Some((line, Token::Word(name) | Token::Quoted(name))) => (line, format!("'{}'", name.escape_debug())),
            Some((line, Token::Mark(mark))) => (line, format!("'{mark}'")),
            None => (self.last, "the end of the text".to_owned()),
        };
        Err(self.edges.at(line, format!("{found} where {expected} is expected")))
    }
}
