//! The public interface of the library is that of `docs/INTERFACE.txt`, so that a review sees every change of it.
//!
//! The test parses the sources from `src/lib.rs` on and lists each item that a user of the library can name: those of
//! public modules, with fields, variants, methods and implemented traits, and what these modules re-export from private
//! ones. It omits items that are hidden from the documentation (`#[doc(hidden)]`) and those of tests.
//!
//! `GRUNDY_BLESS=1 cargo test --profile quick --test sources interface` writes the file again.

use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type, UseTree, Visibility};

/// The listing.
const LISTING: &str = "docs/INTERFACE.txt";

/// Maximum number of re-exports between a name and its definition.
const LONGEST_CHAIN: usize = 16;

/// The path of a module or an item below the crate.
type Names = Vec<String>;

struct Module {
    /// Whether users can name the module.
    is_public: bool,
    items: Vec<Item>,
}

/// A name that a `use` brings into a module.
struct Import {
    name: String,
    path: Names,
    /// Whether users of the module can name it.
    is_public: bool,
}

/// The modules of the library, by path.
#[derive(Default)]
struct Library(BTreeMap<Names, Module>);

/// The lines of the listing, sorted.
#[derive(Default)]
struct Lines(BTreeSet<String>);

impl Lines {
    fn add(&mut self, line: String) {
        self.0.insert(line);
    }
}

fn has(attributes: &[Attribute], text: &str) -> bool {
    attributes.iter().any(|attribute| attribute.meta.to_token_stream().to_string().replace(' ', "").contains(text))
}

/// Whether an attribute removes the item from the interface.
fn is_left_out(attributes: &[Attribute]) -> bool {
    has(attributes, "doc(hidden)") || has(attributes, "cfg(test)")
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn joined(path: &[String], name: &str) -> Names {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// Tokens as rustfmt would space them, on one line.
fn shown(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    let spaces = [
        (" :: ", "::"),
        (":: ", "::"),
        (" :", ":"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        ("& ", "&"),
        ("? ", "?"),
        ("( ", "("),
        (" )", ")"),
        ("[ ", "["),
        (" ]", "]"),
        ("Fn (", "Fn("),
        ("FnMut (", "FnMut("),
        ("FnOnce (", "FnOnce("),
        (",)", ")"),
        (",>", ">"),
    ];
    for (from, to) in spaces {
        text = text.replace(from, to);
    }
    // A parameter list follows generics without a space; a result in parentheses keeps it.
    text = text.replace("-> (", "->  (").replace("> (", ">(");
    // Whether a parameter is mutable does not concern the caller.
    text = text.replace("(mut ", "(").replace(", mut ", ", ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line of a function: its name joins its parameters.
fn signature(signature: &syn::Signature) -> String {
    let name = signature.ident.to_string();
    shown(signature).replacen(&format!("{name} ("), &format!("{name}("), 1)
}

/// The name and the attributes of an item that can be named, and whether it is public.
fn named(item: &Item) -> Option<(String, &[Attribute], bool)> {
    let (name, attributes, visibility) = match item {
        Item::Const(item) => (&item.ident, &item.attrs, &item.vis),
        Item::Enum(item) => (&item.ident, &item.attrs, &item.vis),
        Item::Fn(item) => (&item.sig.ident, &item.attrs, &item.vis),
        Item::Static(item) => (&item.ident, &item.attrs, &item.vis),
        Item::Struct(item) => (&item.ident, &item.attrs, &item.vis),
        Item::Trait(item) => (&item.ident, &item.attrs, &item.vis),
        Item::Type(item) => (&item.ident, &item.attrs, &item.vis),
        _ => return None,
    };
    Some((name.to_string(), attributes, is_public(visibility)))
}

/// The names that a `use` imports, with their paths.
fn imports(tree: &UseTree, before: &[String], is_public: bool, into: &mut Vec<Import>) {
    match tree {
        UseTree::Path(path) => imports(&path.tree, &joined(before, &path.ident.to_string()), is_public, into),
        UseTree::Name(name) if name.ident == "self" => {
            into.push(Import { name: before.last().cloned().unwrap_or_default(), path: before.to_vec(), is_public });
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            into.push(Import { path: joined(before, &name), name, is_public });
        }
        UseTree::Rename(rename) => {
            let path = joined(before, &rename.ident.to_string());
            into.push(Import { name: rename.rename.to_string(), path, is_public });
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| imports(tree, before, is_public, into)),
        UseTree::Glob(_) => assert!(!is_public, "a public `use` of `*` in {before:?}: name the items"),
    }
}

impl Module {
    fn imports(&self) -> Vec<Import> {
        let mut found = Vec::new();
        for item in &self.items {
            if let Item::Use(item) = item {
                let is_public = is_public(&item.vis) && !is_left_out(&item.attrs);
                imports(&item.tree, &[], is_public, &mut found);
            }
        }
        found
    }

    fn defines(&self, name: &str) -> bool {
        self.items.iter().filter_map(named).any(|(defined, ..)| defined == name)
    }
}

impl Library {
    fn read() -> Library {
        let mut library = Library::default();
        let text = std::fs::read_to_string("src/lib.rs").unwrap();
        library.add(Vec::new(), true, syn::parse_file(&text).unwrap().items, Path::new("src"));
        library
    }

    /// Adds a module and those in it, whose files lie in `folder`.
    fn add(&mut self, path: Names, is_reachable: bool, items: Vec<Item>, folder: &Path) {
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if has(&module.attrs, "cfg(test)") {
                continue;
            }
            let name = module.ident.to_string();
            let inner = match &module.content {
                Some((_, items)) => items.clone(),
                None => {
                    let files = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
                    let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
                    syn::parse_file(&text.unwrap_or_else(|| panic!("{path:?} has no file of {name}"))).unwrap().items
                }
            };
            let is_reachable = is_reachable && is_public(&module.vis) && !is_left_out(&module.attrs);
            self.add(joined(&path, &name), is_reachable, inner, &folder.join(&name));
        }
        self.0.insert(path, Module { is_public: is_reachable, items });
    }

    /// The definition that `path` means in the module `from`; `None` outside the crate.
    fn resolve(&self, from: &[String], path: &[String], chain: usize) -> Option<Names> {
        assert!(chain < LONGEST_CHAIN, "{path:?} in {from:?} has no end");
        let (first, rest) = path.split_first()?;
        let mut at = from.to_vec();
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            name => return self.step(&at, name, rest, chain),
        }
        match rest.split_first() {
            Some((name, _)) if name == "super" => self.resolve(&at, rest, chain),
            Some((name, rest)) => self.step(&at, name, rest, chain),
            None => Some(at),
        }
    }

    /// Follows `name` and then `rest` from the module `at`.
    fn step(&self, at: &[String], name: &str, rest: &[String], chain: usize) -> Option<Names> {
        let inner = joined(at, name);
        if self.0.contains_key(&inner) {
            return match rest.split_first() {
                Some((next, rest)) => self.step(&inner, next, rest, chain),
                None => Some(inner),
            };
        }
        let module = self.0.get(at)?;
        if module.defines(name) {
            return Some(inner);
        }
        let import = module.imports().into_iter().find(|import| import.name == name)?;
        let path: Names = import.path.into_iter().chain(rest.iter().cloned()).collect();
        if path[0] == name && path.len() == 1 + rest.len() {
            return None; // an extern crate
        }
        self.resolve(at, &path, chain + 1)
    }

    /// One line for each public item, sorted.
    fn listing(&self) -> Vec<String> {
        let mut lines = Lines::default();
        // The path under which the lines of a definition stand.
        let mut exposed: BTreeMap<Names, String> = BTreeMap::new();
        for (path, module) in self.0.iter().filter(|(_, module)| module.is_public) {
            for item in &module.items {
                if let Some((name, attributes, true)) = named(item)
                    && !is_left_out(attributes)
                {
                    exposed.insert(joined(path, &name), written(&joined(path, &name)));
                }
            }
        }
        // Inner modules first, so that a re-export of the crate refers to the module of the item.
        for (path, module) in self.0.iter().rev().filter(|(_, module)| module.is_public) {
            for import in module.imports().into_iter().filter(|import| import.is_public) {
                let place = written(&joined(path, &import.name));
                match self.resolve(path, &import.path, 0) {
                    None => lines.add(format!("{place}: use {}", import.path.join("::"))),
                    Some(home) => match exposed.get(&home) {
                        Some(at) => lines.add(format!("{place}: use {at}")),
                        None => drop(exposed.insert(home, place)),
                    },
                }
            }
        }
        for (path, module) in &self.0 {
            for item in &module.items {
                if let Item::Impl(block) = item {
                    self.list_impl(path, block, &exposed, &mut lines);
                } else if let Some((name, ..)) = named(item)
                    && let Some(place) = exposed.get(&joined(path, &name))
                {
                    list_item(item, place, &mut lines);
                }
            }
        }
        lines.0.into_iter().collect()
    }

    /// Lists what an `impl` adds to an exposed type.
    fn list_impl(&self, from: &[String], block: &syn::ItemImpl, exposed: &BTreeMap<Names, String>, lines: &mut Lines) {
        let Type::Path(path) = &*block.self_ty else { return };
        let names: Names = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let Some(place) = self.resolve(from, &names, 0).and_then(|home| exposed.get(&home)) else { return };
        if is_left_out(&block.attrs) {
            return;
        }
        if let Some((_, name, _)) = &block.trait_ {
            let (generics, implementor) = (shown(&block.generics), shown(&block.self_ty));
            lines.add(format!("{place}: impl{generics} {} for {implementor}", shown(name)));
            return;
        }
        for item in &block.items {
            match item {
                ImplItem::Fn(method) if is_public(&method.vis) && !is_left_out(&method.attrs) => {
                    lines.add(format!("{place}::{}: {}", method.sig.ident, signature(&method.sig)));
                }
                ImplItem::Const(item) if is_public(&item.vis) && !is_left_out(&item.attrs) => {
                    lines.add(format!("{place}::{}: const {}", item.ident, shown(&item.ty)));
                }
                _ => {}
            }
        }
    }
}

/// A path as users write it.
fn written(path: &[String]) -> String {
    joined(&["grundy".to_owned()], &path.join("::")).join("::")
}

/// Lists an item under the path `place`.
fn list_item(item: &Item, place: &str, lines: &mut Lines) {
    let mut list = |line: String| lines.add(format!("{place}{line}"));
    match item {
        Item::Const(item) => list(format!(": const {}", shown(&item.ty))),
        Item::Static(item) => list(format!(": static {}", shown(&item.ty))),
        Item::Type(item) => list(format!(": type{} = {}", shown(&item.generics), shown(&item.ty))),
        Item::Fn(item) => list(format!(": {}", signature(&item.sig))),
        Item::Struct(item) => {
            list(format!(": {}struct{}", exhaustiveness(&item.attrs), shown(&item.generics)));
            list_derives(&item.attrs, place, lines);
            list_fields(&item.fields, place, lines);
        }
        Item::Enum(item) => {
            list(format!(": {}enum{}", exhaustiveness(&item.attrs), shown(&item.generics)));
            list_derives(&item.attrs, place, lines);
            for variant in item.variants.iter().filter(|variant| !is_left_out(&variant.attrs)) {
                let fields = fields_of(&variant.fields);
                lines.add(format!("{place}::{}: variant {fields}", variant.ident).trim_end().to_owned());
            }
        }
        Item::Trait(item) => {
            list(format!(": trait{} {}", shown(&item.generics), shown(&item.supertraits)).trim_end().to_owned());
            for item in &item.items {
                match item {
                    TraitItem::Fn(method) if !is_left_out(&method.attrs) => {
                        let provided = if method.default.is_some() { "provided " } else { "required " };
                        lines.add(format!("{place}::{}: {provided}{}", method.sig.ident, signature(&method.sig)));
                    }
                    TraitItem::Type(item) => lines.add(format!("{place}::{}: type", item.ident)),
                    TraitItem::Const(item) => {
                        lines.add(format!("{place}::{}: const {}", item.ident, shown(&item.ty)));
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn exhaustiveness(attributes: &[Attribute]) -> &'static str {
    if has(attributes, "non_exhaustive") { "non_exhaustive " } else { "" }
}

/// The fields of a variant, without their documentation.
fn fields_of(fields: &Fields) -> String {
    let field = |field: &syn::Field| match &field.ident {
        Some(name) => format!("{name}: {}", shown(&field.ty)),
        None => shown(&field.ty),
    };
    let list: Vec<String> = fields.iter().map(field).collect();
    match fields {
        Fields::Named(_) => format!("{{ {} }}", list.join(", ")),
        Fields::Unnamed(_) => format!("({})", list.join(", ")),
        Fields::Unit => String::new(),
    }
}

fn list_fields(fields: &Fields, place: &str, lines: &mut Lines) {
    for (i, field) in fields.iter().enumerate() {
        if is_public(&field.vis) && !is_left_out(&field.attrs) {
            let name = field.ident.as_ref().map_or_else(|| i.to_string(), ToString::to_string);
            lines.add(format!("{place}::{name}: field {}", shown(&field.ty)));
        }
    }
}

fn list_derives(attributes: &[Attribute], place: &str, lines: &mut Lines) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("derive")) {
        let list = attribute.meta.require_list().unwrap();
        lines.add(format!("{place}: derives {}", shown(&list.tokens)));
    }
}

#[test]
fn public_interface_is_that_of_the_listing() {
    let now = Library::read().listing();
    assert!(now.len() > 100, "{} items were found", now.len());
    if std::env::var_os("GRUNDY_BLESS").is_some() {
        std::fs::write(LISTING, now.join("\n") + "\n").unwrap();
    }
    let listed = std::fs::read_to_string(LISTING).unwrap_or_default();
    let before: BTreeSet<&str> = listed.lines().collect();
    let now: BTreeSet<&str> = now.iter().map(String::as_str).collect();
    let removed = before.difference(&now).map(|line| format!("- {line}\n"));
    let added = now.difference(&before).map(|line| format!("+ {line}\n"));
    let changes: String = removed.chain(added).collect();
    assert!(
        changes.is_empty(),
        "the public interface changed:\n{changes}If that is intended: GRUNDY_BLESS=1 cargo test --profile quick \
         --test sources interface"
    );
}
