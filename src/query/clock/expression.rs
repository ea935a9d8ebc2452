//! What a clock expression is made of, and how one is told from other expressions. Reads trees, and of catalogs which
//! function stands behind an operator of a view; keeps nothing.

use pgrx::pg_sys::{self, Datum, Oid};

use super::coarse;
use super::functions::{self, Coarse, FOLDED_BY_SETTINGS, Function, GATHERING, MAKE_INTERVAL, MOST_ARGUMENTS};
use super::leaf::{Leaf, reads_time};
use super::types;
use crate::pg::compat::tree::walkers;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, match_node};

/// Deepest nesting of a clock expression.
pub const DEEPEST: usize = 24;

/// A node that may stand in a clock expression.
pub(super) enum Part<'t> {
    /// It asks for the time.
    Leaf(Leaf),
    /// A constant, or a parameter of the statement.
    Given,
    /// A call of a function of the table.
    Call(&'static Function, Arguments<'t>),
    /// A value, which is written as a text, and read from that as a value of this type.
    Converted(Tree<'t, pg_sys::Node>, Oid),
    /// A call of a function that makes a text of these values.
    Gathered(Tree<'t, pg_sys::List>),
    /// A text and a value, which is written as a text, or the other way round: both texts joined.
    Joined(Tree<'t, pg_sys::List>),
    /// GREATEST, or LEAST.
    Extreme(Tree<'t, pg_sys::List>),
    /// COALESCE: the first of these that is not NULL. Those behind it are not computed.
    First(Tree<'t, pg_sys::List>),
}

/// The arguments of a call, as the parser has left them.
#[derive(Clone, Copy)]
pub(super) struct Arguments<'t> {
    list: Option<Tree<'t, pg_sys::List>>,
    taken: usize,
}

impl<'t> Arguments<'t> {
    /// The arguments of a function; `None` if it lacks one that is not known to be zero.
    fn of(list: Option<Tree<'t, pg_sys::List>>, function: &Function) -> Option<Self> {
        let given = list.map_or(0, Tree::length);
        let is_complete = given == function.arguments;
        (is_complete || (function.oid == MAKE_INTERVAL && given < function.arguments))
            .then_some(Self { list, taken: function.arguments })
    }

    /// Returns true if all are given, in their order.
    pub(super) fn are_plain(self) -> bool {
        let is_named =
            |one: Option<Tree<'_, pg_sys::Node>>| one.is_some_and(|one| one.tag() == pg_sys::NodeTag::T_NamedArgExpr);
        self.list.map_or(0, Tree::length) == self.taken && !self.list.into_iter().flat_map(Tree::items).any(is_named)
    }

    /// All that the function takes, in their order. One that is left out is zero, and missing here. `None` if there is
    /// more than it takes.
    pub(super) fn ordered(self) -> Option<impl Iterator<Item = Option<Tree<'t, pg_sys::Node>>>> {
        let mut ordered = [None; MOST_ARGUMENTS];
        for (position, argument) in self.list.into_iter().flat_map(Tree::items).enumerate() {
            let argument = argument?;
            // One that is given by its name stands behind those that are not.
            let (position, argument) = match argument.as_a::<pg_sys::NamedArgExpr>() {
                Some(named) => (usize::try_from(named.argnumber).ok()?, child!(named.arg)?.as_node()),
                None => (position, argument),
            };
            *ordered.get_mut(position).filter(|_| position < self.taken)? = Some(argument);
        }
        Some(ordered.into_iter().take(self.taken))
    }
}

/// The node below those that have the same value: what takes it as one of another type or collation, and sub-queries
/// that compute it. True if some of these are not executed as they are.
pub(super) fn bare(node: Tree<'_, pg_sys::Node>) -> (Tree<'_, pg_sys::Node>, bool) {
    let (mut node, mut is_other) = (node.without_relabelling(), false);
    loop {
        let below = match_node! { node;
            CollateExpr(collated) => child!(collated.arg).map(Tree::as_node),
            SubLink(link) => lone_expression::of_sub_query(link),
            _ => None,
        };
        match below {
            Some(below) => (node, is_other) = (below.without_relabelling(), true),
            None => return (node, is_other),
        }
    }
}

/// What a node is in a clock expression; `None` if it may not stand in one, whatever is below it.
pub(super) fn part(node: Tree<'_, pg_sys::Node>) -> Option<Part<'_>> {
    if let Some(leaf) = Leaf::of(node) {
        return Some(Part::Leaf(leaf));
    }
    match_node! { node;
        Const(_constant) => Some(Part::Given),
        Param(param) => (param.paramkind == pg_sys::ParamKind::PARAM_EXTERN).then_some(Part::Given),
        FuncExpr(call) => if GATHERING.contains(&call.funcid.to_u32()) {
            // The values of which it makes a text may not be given as an array.
            child!(call.args).filter(|_| !call.funcvariadic).map(Part::Gathered)
        } else {
            called(call.funcid, child!(call.args))
        },
        OpExpr(call) => match behind(call) {
            joining if functions::joins(joining) => joined(child!(call.args)?),
            function => called(function, child!(call.args)),
        },
        CoerceViaIO(coercion) => {
            let value = child!(coercion.arg).filter(|_| types::is_known(coercion.resulttype))?;
            Some(Part::Converted(value.as_node(), coercion.resulttype))
        },
        MinMaxExpr(choice) => child!(choice.args).filter(|_| types::is_compared(choice.minmaxtype)).map(Part::Extreme),
        CoalesceExpr(choice) => child!(choice.args).filter(|_| types::is_known(choice.coalescetype)).map(Part::First),
        _ => None,
    }
}

/// The function behind an operator. The parser has looked it up; the text of a view does not say it.
pub(super) fn behind(call: Tree<'_, pg_sys::OpExpr>) -> Oid {
    // SAFETY: reads a catalog about an operator of the tree.
    if call.opfuncid == pg_sys::InvalidOid { unsafe { kept!(pg_sys::get_opcode(call.opno)) } } else { call.opfuncid }
}

fn called(function: Oid, arguments: Option<Tree<'_, pg_sys::List>>) -> Option<Part<'_>> {
    let function = functions::listed(function)?;
    Some(Part::Call(function, Arguments::of(arguments, function)?))
}

/// A text and a value that are joined. The casts of `boolean` and `char(n)` to text are functions of their own.
fn joined(both: Tree<'_, pg_sys::List>) -> Option<Part<'_>> {
    let is_written = |one: Tree<'_, pg_sys::Node>| !matches!(type_of(one), pg_sys::BOOLOID | pg_sys::BPCHAROID);
    both.items().all(|one| one.is_some_and(is_written)).then_some(Part::Joined(both))
}

/// The type of an expression's values.
pub(super) fn type_of(expression: Tree<'_, pg_sys::Node>) -> Oid {
    // SAFETY: an expression of a valid tree.
    unsafe { walkers::exprType(expression.as_ptr()) }
}

/// Returns true if this is what the server adds to a call of `make_interval` for an argument that is left out: zero.
/// Whoever replaces the function may choose something else.
pub fn is_zero(node: Tree<'_, pg_sys::Node>) -> bool {
    /// float8(numeric)
    const FLOAT8: u32 = 1746;
    /// The bytes of 0.0 behind those of its length (utils/adt/numeric.c).
    const ZERO: &[u8] = &0x8080u16.to_ne_bytes();
    if let Some(call) = node.as_a::<pg_sys::FuncExpr>() {
        let argument = child!(call.args).and_then(|arguments| arguments.items().next().flatten());
        return call.funcid.to_u32() == FLOAT8
            && argument.and_then(Tree::as_a::<pg_sys::Const>).is_some_and(|constant| {
                constant.consttype == pg_sys::NUMERICOID
                    && !constant.constisnull
                    // SAFETY: a constant of that type that is not NULL, as long as its tree.
                    && unsafe { pgrx::varlena_to_byte_slice(constant.constvalue.cast_mut_ptr()) } == ZERO
            });
    }
    node.as_a::<pg_sys::Const>().is_some_and(|constant| {
        constant.consttype == pg_sys::INT4OID && !constant.constisnull && constant.constvalue.value() == 0
    })
}

/// How long an expression keeps its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pace {
    /// For a minute or more.
    Settled,
    /// Its values tell.
    Unknown,
    /// No longer than a microsecond.
    Moving,
}

/// What is known of an expression that could be a clock expression, or part of one.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    /// It asks for the time.
    pub asks: bool,
    /// It asks for the arrival of a message.
    pub asks_for_message: bool,
    /// It names parameters of the statement.
    pub has_params: bool,
    /// It is not executed as it is: it takes other nodes, which have the same value (`carried`).
    pub is_other: bool,
    /// How long it keeps its value.
    pub pace: Pace,
    /// How deep it nests.
    depth: usize,
}

impl Closed {
    /// It says nothing.
    pub(super) const NOTHING: Self = Self {
        asks: false,
        asks_for_message: false,
        has_params: false,
        is_other: false,
        pace: Pace::Settled,
        depth: 0,
    };

    /// What is known of both together.
    fn with(self, other: Self) -> Self {
        Self {
            asks: self.asks || other.asks,
            asks_for_message: self.asks_for_message || other.asks_for_message,
            has_params: self.has_params || other.has_params,
            is_other: self.is_other || other.is_other,
            pace: self.pace.max(other.pace),
            depth: self.depth.max(other.depth),
        }
    }

    /// Returns true if whatever in it asks for the time lies below something that may be coarse.
    pub fn may_settle(&self) -> bool {
        self.pace != Pace::Moving
    }
}

/// Which values are known when an expression is read.
#[derive(Clone, Copy)]
pub enum Values<'p> {
    /// None: what is found holds for all queries of one form.
    None,
    /// Constants, and these parameters.
    Of(Option<Tree<'p, pg_sys::ParamListInfoData>>),
}

/// What is known of an expression that is made of nothing but such parts, whatever its constants are; `None` for any
/// other.
pub fn closed(node: Tree<'_, pg_sys::Node>) -> Option<Closed> {
    Reader { known: &[], found: &[], values: Values::None }.closed(node, 0)
}

/// As `closed`, by the values of constants, for an expression that may have some below it which are `known`, and of which
/// this was `found`.
pub(super) fn closed_above(
    node: Tree<'_, pg_sys::Node>,
    known: &[*mut pg_sys::Node],
    found: &[Closed],
) -> Option<Closed> {
    Reader { known, found, values: Values::Of(None) }.closed(node, 0)
}

/// As `closed`, by the values of constants and of these parameters.
pub(super) fn closed_by(
    node: Tree<'_, pg_sys::Node>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<Closed> {
    Reader { known: &[], found: &[], values: Values::Of(params) }.closed(node, 0)
}

struct Reader<'r> {
    known: &'r [*mut pg_sys::Node],
    found: &'r [Closed],
    values: Values<'r>,
}

impl Reader<'_> {
    fn closed(&self, node: Tree<'_, pg_sys::Node>, depth: usize) -> Option<Closed> {
        if depth > DEEPEST {
            return None;
        }
        if let Some(place) = self.known.iter().position(|known| *known == node.as_ptr()) {
            return self.found.get(place).copied();
        }
        let (bare, is_other) = bare(node);
        let found = match part(bare)? {
            Part::Leaf(leaf) => Closed {
                asks: true,
                asks_for_message: leaf == Leaf::Statement,
                pace: if leaf == Leaf::Date { Pace::Settled } else { Pace::Moving },
                ..Closed::NOTHING
            },
            // Whatever type it has, such as a domain: what it is taken for counts.
            Part::Given => {
                let has_params = bare.tag() == pg_sys::NodeTag::T_Param;
                types::is_known(type_of(node)).then_some(Closed { has_params, ..Closed::NOTHING })?
            }
            Part::Call(function, arguments) => self.call(bare, function, arguments, depth)?,
            Part::Converted(value, type_oid) => {
                let all = self.text(value, depth + 1)?;
                let asks = reads_time(type_oid);
                let pace = if asks { self.pace_read(value).max(all.pace) } else { all.pace };
                Closed { asks: all.asks || asks, pace, ..all }
            }
            // It is STABLE, so that the planner does not write its values.
            Part::Gathered(values) => self.all(values, |value| self.closed(value, depth + 1))?,
            Part::Joined(both) => Closed { is_other: true, ..self.all(both, |one| self.text(one, depth + 1))? },
            Part::Extreme(values) => {
                // Of the time and something that does not move, it may be the latter.
                let all = self.all(values, |value| self.closed(value, depth + 1))?;
                Closed { pace: all.pace.min(Pace::Unknown), ..all }
            }
            Part::First(choices) => {
                // If the first one moves, so does its being chosen. If it does not, it may be what is chosen.
                let mut choices = choices.items();
                let first = self.closed(choices.next()??, depth + 1)?;
                let all = choices.try_fold(first, |all, one| Some(all.with(self.closed(one?, depth + 1)?)))?;
                Closed { pace: if first.may_settle() { all.pace.min(Pace::Unknown) } else { Pace::Moving }, ..all }
            }
        };
        // What is known below is not walked once more.
        let is_too_deep = found.depth > DEEPEST;
        (!is_too_deep).then_some(Closed { is_other: is_other || found.is_other, depth: found.depth + 1, ..found })
    }

    /// What is known of several expressions together.
    fn all<'t>(
        &self,
        list: Tree<'t, pg_sys::List>,
        read: impl Fn(Tree<'t, pg_sys::Node>) -> Option<Closed>,
    ) -> Option<Closed> {
        list.items().try_fold(Closed::NOTHING, |all, one| Some(all.with(read(one?)?)))
    }

    fn call(
        &self,
        call: Tree<'_, pg_sys::Node>,
        function: &Function,
        arguments: Arguments<'_>,
        depth: usize,
    ) -> Option<Closed> {
        let mut all = Closed::NOTHING;
        let mut told = (function.coarse == Coarse::Always).then_some(true);
        for (place, argument) in arguments.ordered()?.enumerate() {
            let Some(argument) = argument else { continue };
            all = all.with(self.closed(argument, depth + 1)?);
            if function.coarse.decided_by() == Some(place) {
                told = self.is_told(function.coarse, argument);
            }
        }
        if !all.asks && FOLDED_BY_SETTINGS.contains(&function.oid) {
            return None;
        }
        let pace = match (function.coarse, told) {
            (Coarse::Never, _) | (_, Some(false)) => all.pace,
            (_, Some(true)) => Pace::Settled,
            (_, None) => all.pace.min(Pace::Unknown),
        };
        let is_looked_up = call.as_a::<pg_sys::OpExpr>().is_none_or(|call| call.opfuncid != pg_sys::InvalidOid);
        Some(Closed { pace, is_other: all.is_other || !is_looked_up || !arguments.are_plain(), ..all })
    }

    /// As `closed`, for a value that is written as a text. The planner may write a constant, and a kept plan has what
    /// that gave under the settings of planning. So the types whose output functions read settings and are marked
    /// IMMUTABLE must be asked about the time.
    fn text(&self, value: Tree<'_, pg_sys::Node>, depth: usize) -> Option<Closed> {
        let all = self.closed(value, depth)?;
        let reads_settings = matches!(type_of(value), pg_sys::TIMEOID | pg_sys::TIMETZOID | pg_sys::FLOAT8OID);
        (all.asks || !reads_settings).then_some(all)
    }

    /// The value of a constant or a parameter, if it is known; the inner `None` stands for NULL.
    fn value(&self, node: Tree<'_, pg_sys::Node>) -> Option<Option<Datum>> {
        let Values::Of(params) = self.values else { return None };
        let (value, is_null) = given(bare(node).0, params)?;
        Some((!is_null).then_some(value))
    }

    /// Whether the result of a function changes by the minute at most, if that is known: the value of the argument that
    /// decides on it tells. That of NULL is NULL, whatever time it is.
    fn is_told(&self, coarse: Coarse, argument: Tree<'_, pg_sys::Node>) -> Option<bool> {
        // SAFETY: a value of the type that such functions take in this place.
        self.value(argument).map(|value| value.is_none_or(|value| unsafe { coarse::is_told(coarse, value) }))
    }

    /// How long the time that is read from a text stays the same: a constant or a parameter may be a word for the
    /// present.
    fn pace_read(&self, text: Tree<'_, pg_sys::Node>) -> Pace {
        let bare = bare(text).0;
        let is_text = matches!(type_of(bare), pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID);
        if !is_text || !matches!(part(bare), Some(Part::Given)) {
            return Pace::Settled;
        }
        match self.value(text) {
            None => Pace::Unknown,
            // SAFETY: a value of one of these types.
            Some(Some(words)) if unsafe { coarse::names_present(words) } => Pace::Moving,
            Some(_) => Pace::Settled,
        }
    }
}

/// The value of a constant, or of a parameter that is there, and whether it is NULL; `None` for anything else.
pub(super) fn given(
    node: Tree<'_, pg_sys::Node>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<(Datum, bool)> {
    match_node! { node;
        Const(constant) => Some((constant.constvalue, constant.constisnull)),
        Param(param) => {
            let params = params.filter(|params| params.paramFetch.is_none())?;
            let place = usize::try_from(param.paramid - 1).ok().filter(|place| *place < params.numParams as usize)?;
            // SAFETY: the list ends with as many values as it says.
            let value: pg_sys::ParamExternData =
                unsafe { *(&raw const (*params.as_ptr()).params).cast::<pg_sys::ParamExternData>().add(place) };
            (value.ptype == param.paramtype).then_some((value.value, value.isnull))
        },
        _ => None,
    }
}
