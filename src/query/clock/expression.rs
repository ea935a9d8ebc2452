//! What a clock expression is made of, and how one is told from other expressions. Reads trees; keeps nothing.

use pgrx::pg_sys;

use super::functions::{self, Coarse, FUNCTIONS, Function, GATHERING, MOST_ARGUMENTS};
use super::kinds::Kind;
use super::split::{Comparison, Fixed, Split};
use crate::pg::compat::tree::walkers;
use crate::pg::lone_expression;
use crate::pg::tree::{Tree, child, match_node};

/// Deepest nesting of a clock expression.
pub const DEEPEST: usize = 24;

/// now(), transaction_timestamp() and statement_timestamp().
const NOW: u32 = 1299;
const TRANSACTION_TIMESTAMP: u32 = 2647;
const STATEMENT_TIMESTAMP: u32 = 2648;

/// make_interval(int, int, int, int, int, int, double precision)
const MAKE_INTERVAL: u32 = 3464;

/// Functions of the table that read settings and are marked IMMUTABLE: timezone(text, timestamptz), age(timestamptz, timestamptz),
/// date_trunc(text, timestamptz, text), timezone(text, timestamp). A kept plan has what they gave for constants under the settings of
/// planning, which may not be those of now. So they stand in a clock expression only where they are asked about the time.
const FOLDED_BY_SETTINGS: [u32; 4] = [1159, 1199, 1284, 2069];

/// What asks for the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Leaf {
    /// The start of the transaction.
    Transaction,
    /// The arrival of the client's message.
    Statement,
    /// CURRENT_DATE; this and all that follow are about the start of the transaction.
    Date,
    /// CURRENT_TIME
    Time,
    /// CURRENT_TIMESTAMP
    Timestamp,
    /// LOCALTIME
    LocalTime,
    /// LOCALTIMESTAMP
    LocalTimestamp,
}

impl Leaf {
    const ALL: [Self; 7] = [
        Self::Transaction,
        Self::Statement,
        Self::Date,
        Self::Time,
        Self::Timestamp,
        Self::LocalTime,
        Self::LocalTimestamp,
    ];

    /// The leaf with this number.
    pub fn numbered(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The type of its value.
    pub fn kind(self) -> Kind {
        match self {
            Self::Transaction | Self::Statement | Self::Timestamp => Kind::TimestampTz,
            Self::Date => Kind::Date,
            Self::Time => Kind::TimeTz,
            Self::LocalTime => Kind::Time,
            Self::LocalTimestamp => Kind::Timestamp,
        }
    }

    fn of_function(function: pg_sys::Oid) -> Option<Self> {
        match function.to_u32() {
            NOW | TRANSACTION_TIMESTAMP => Some(Self::Transaction),
            STATEMENT_TIMESTAMP => Some(Self::Statement),
            _ => None,
        }
    }

    fn of_value(value: &pg_sys::SQLValueFunction) -> Option<Self> {
        use pg_sys::SQLValueFunctionOp as Op;
        match value.op {
            Op::SVFOP_CURRENT_DATE => Some(Self::Date),
            Op::SVFOP_CURRENT_TIME | Op::SVFOP_CURRENT_TIME_N => Some(Self::Time),
            Op::SVFOP_CURRENT_TIMESTAMP | Op::SVFOP_CURRENT_TIMESTAMP_N => Some(Self::Timestamp),
            Op::SVFOP_LOCALTIME | Op::SVFOP_LOCALTIME_N => Some(Self::LocalTime),
            Op::SVFOP_LOCALTIMESTAMP | Op::SVFOP_LOCALTIMESTAMP_N => Some(Self::LocalTimestamp),
            _ => None,
        }
    }
}

/// May a text ask for the time by a word, if it becomes a value of this type? One that becomes a date asks for the day (`day`).
pub fn reads_time(type_oid: pg_sys::Oid) -> bool {
    matches!(type_oid, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID | pg_sys::TIMEOID | pg_sys::TIMETZOID)
}

/// Does a call of this function ask for the time?
pub fn asks_for_time(function: pg_sys::Oid) -> bool {
    Leaf::of_function(function).is_some()
}

/// Is this a word for the time, such as CURRENT_TIMESTAMP?
pub fn is_time(value: &pg_sys::SQLValueFunction) -> bool {
    Leaf::of_value(value).is_some()
}

/// A node that may stand in a clock expression.
pub enum Part<'t> {
    /// It asks for the time; with the modifier of its type.
    Leaf(Leaf, i32),
    /// A constant.
    Constant(Kind, Tree<'t, pg_sys::Const>),
    /// A parameter of the statement.
    Parameter(Kind, Tree<'t, pg_sys::Param>),
    /// A call of the function at this place of `FUNCTIONS`, with its collation.
    Call(usize, pg_sys::Oid, Arguments<'t>),
    /// A value, which is written as a text, and read from that as a value of this kind.
    Converted(Tree<'t, pg_sys::Node>, Kind),
    /// A call of the function at this place of `GATHERING`, with its collation.
    Gathered(usize, pg_sys::Oid, Tree<'t, pg_sys::List>),
    /// A text and a value, which is written as a text, or the other way round: both texts joined; with their collation.
    Joined(Tree<'t, pg_sys::List>, pg_sys::Oid),
    /// GREATEST, or LEAST, of values of this kind.
    Extreme { greatest: bool, kind: Kind, of: Tree<'t, pg_sys::List> },
    /// COALESCE: the first of these that is not NULL. Those behind it are not computed.
    First(Tree<'t, pg_sys::List>),
}

/// The arguments of a call, as the parser has left them.
#[derive(Clone, Copy)]
pub struct Arguments<'t> {
    list: Option<Tree<'t, pg_sys::List>>,
    taken: usize,
}

impl<'t> Arguments<'t> {
    /// The arguments of a function; `None` if it lacks one that is not known to be zero.
    fn of(list: Option<Tree<'t, pg_sys::List>>, place: usize) -> Option<Self> {
        let Function { oid, arguments: taken, .. } = FUNCTIONS[place];
        let given = list.map_or(0, Tree::length);
        (given == taken || (oid == MAKE_INTERVAL && given < taken)).then_some(Self { list, taken })
    }

    /// Those that are given, in any order.
    fn given(self) -> impl Iterator<Item = Option<Tree<'t, pg_sys::Node>>> {
        self.list.into_iter().flat_map(Tree::items).map(|argument| {
            let argument = argument?;
            match argument.as_a::<pg_sys::NamedArgExpr>() {
                Some(named) => child!(named.arg).map(Tree::as_node),
                None => Some(argument),
            }
        })
    }

    /// All that the function takes, in their order. One that is left out is zero, and missing here. `None` if there is more than it takes.
    pub fn ordered(self) -> Option<impl Iterator<Item = Option<Tree<'t, pg_sys::Node>>>> {
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
/// that compute it.
fn bare(node: Tree<'_, pg_sys::Node>) -> Tree<'_, pg_sys::Node> {
    let mut node = node.without_relabelling();
    loop {
        let below = match_node! { node;
            CollateExpr(collated) => child!(collated.arg).map(Tree::as_node),
            SubLink(link) => lone_expression::of_sub_query(link),
            _ => None,
        };
        match below {
            Some(below) => node = below.without_relabelling(),
            None => return node,
        }
    }
}

/// The kind of an expression's values.
fn kind_of(expression: Tree<'_, pg_sys::Node>) -> Option<Kind> {
    // SAFETY: an expression of a valid tree.
    Kind::of(unsafe { walkers::exprType(expression.as_ptr()) })
}

/// What a node is in a clock expression; `None` if it may not stand in one, whatever is below it.
pub fn part(node: Tree<'_, pg_sys::Node>) -> Option<Part<'_>> {
    let bare = bare(node);
    match_node! { bare;
        // Whatever type it has, such as a domain: where it is taken for a value of a kind, it is one.
        Const(constant) => Some(Part::Constant(kind_of(node)?, constant)),
        Param(param) => {
            let is_external = param.paramkind == pg_sys::ParamKind::PARAM_EXTERN;
            Some(Part::Parameter(kind_of(node).filter(|_| is_external)?, param))
        },
        _ => computed(bare).filter(|_| bare.as_ptr() == node.as_ptr() || kind_of(bare) == kind_of(node)),
    }
}

/// As `part`, for a node that is no constant, parameter or the like.
fn computed(node: Tree<'_, pg_sys::Node>) -> Option<Part<'_>> {
    match_node! { node;
        FuncExpr(call) => match Leaf::of_function(call.funcid) {
            Some(leaf) => Some(Part::Leaf(leaf, -1)),
            None => gathered(call).or_else(|| called(call.funcid, call.inputcollid, child!(call.args))),
        },
        OpExpr(call) => {
            if functions::joins(call.opno) {
                return Some(Part::Joined(child!(call.args)?, call.inputcollid));
            }
            called(functions::behind(call.opno)?, call.inputcollid, child!(call.args))
        },
        CoerceViaIO(coercion) => Some(Part::Converted(child!(coercion.arg)?.as_node(), Kind::of(coercion.resulttype)?)),
        MinMaxExpr(choice) => {
            let kind = Kind::of(choice.minmaxtype).filter(|kind| kind.handled().compares.is_some())?;
            let greatest = choice.op == pg_sys::MinMaxOp::IS_GREATEST;
            Some(Part::Extreme { greatest, kind, of: child!(choice.args)? })
        },
        CoalesceExpr(choice) => {
            Kind::of(choice.coalescetype)?;
            Some(Part::First(child!(choice.args)?))
        },
        SQLValueFunction(value) => Some(Part::Leaf(Leaf::of_value(&value)?, value.typmod)),
        _ => None,
    }
}

/// A call of a function that makes a text of several values. Those may not be given as an array.
fn gathered(call: Tree<'_, pg_sys::FuncExpr>) -> Option<Part<'_>> {
    let place = GATHERING.iter().position(|listed| *listed == call.funcid.to_u32())?;
    let values = child!(call.args).filter(|values| values.length() <= MOST_ARGUMENTS && !call.funcvariadic)?;
    Some(Part::Gathered(place, call.inputcollid, values))
}

fn called(
    function: pg_sys::Oid,
    collation: pg_sys::Oid,
    arguments: Option<Tree<'_, pg_sys::List>>,
) -> Option<Part<'_>> {
    let place = functions::place_of(function)?;
    Some(Part::Call(place, collation, Arguments::of(arguments, place)?))
}

/// Is this what the server adds to a call of `make_interval` for an argument that is left out: zero? Whoever replaces the function may
/// choose something else.
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

/// What is known of an expression that could be a clock expression, or part of one.
#[derive(Clone, Copy)]
pub struct Closed {
    /// It asks for the time.
    pub asks: bool,
    /// Whatever in it asks for the time lies below something that may be coarse.
    pub may_settle: bool,
}

impl Closed {
    /// What is known of both together.
    fn with(self, other: Self) -> Self {
        Self { asks: self.asks || other.asks, may_settle: self.may_settle && other.may_settle }
    }
}

/// What is known of an expression that is made of nothing but such parts; `None` for any other.
pub fn closed(node: Tree<'_, pg_sys::Node>) -> Option<Closed> {
    closed_above(node, &[], 0)
}

/// As `closed`, for an expression that may have some below it of which all is `known`.
fn closed_above(node: Tree<'_, pg_sys::Node>, known: &[*mut pg_sys::Node], depth: usize) -> Option<Closed> {
    if depth > DEEPEST {
        return None;
    }
    if known.contains(&node.as_ptr()) {
        return Some(Closed { asks: true, may_settle: true });
    }
    match part(node)? {
        Part::Leaf(leaf, _) => Some(Closed { asks: true, may_settle: leaf == Leaf::Date }),
        Part::Constant(..) | Part::Parameter(..) => Some(Closed { asks: false, may_settle: true }),
        Part::Call(place, _, arguments) => {
            let mut all = Closed { asks: false, may_settle: true };
            for argument in arguments.given() {
                all = all.with(closed_above(argument?, known, depth + 1)?);
            }
            if !all.asks && FOLDED_BY_SETTINGS.contains(&FUNCTIONS[place].oid) {
                return None;
            }
            let coarse = FUNCTIONS[place].coarse != Coarse::Never;
            Some(Closed { may_settle: all.may_settle || coarse, ..all })
        }
        Part::Converted(value, kind) => {
            let all = closed_text(value, known, depth + 1)?;
            Some(Closed { asks: all.asks || reads_time(kind.type_oid()), ..all })
        }
        // It is STABLE, so that the planner does not write its values.
        Part::Gathered(_, _, values) => {
            let mut all = Closed { asks: false, may_settle: true };
            for value in values.items() {
                all = all.with(closed_above(value?, known, depth + 1)?);
            }
            Some(all)
        }
        Part::Joined(both, _) => {
            let mut all = Closed { asks: false, may_settle: true };
            for one in both.items() {
                all = all.with(closed_text(one?, known, depth + 1)?);
            }
            Some(all)
        }
        Part::Extreme { of, .. } => {
            let mut all = Closed { asks: false, may_settle: true };
            for one in of.items() {
                all = all.with(closed_above(one?, known, depth + 1)?);
            }
            // Of the time and something that does not move, it may be the latter.
            Some(Closed { may_settle: true, ..all })
        }
        Part::First(choices) => {
            let mut all = None;
            for choice in choices.items() {
                let one = closed_above(choice?, known, depth + 1)?;
                // If the first one moves, so does its being chosen. If it does not, it may be what is chosen.
                let first = all.unwrap_or(Closed { asks: false, ..one });
                all = Some(Closed { asks: first.asks || one.asks, ..first });
            }
            all
        }
    }
}

/// As `closed_above`, for a value that is written as a text. The planner may write a constant, and a kept plan has what that gave under the
/// settings of planning. So the types whose output functions read settings and are marked IMMUTABLE must be asked about the time.
fn closed_text(value: Tree<'_, pg_sys::Node>, known: &[*mut pg_sys::Node], depth: usize) -> Option<Closed> {
    let kind = kind_of(value)?;
    let all = closed_above(value, known, depth)?;
    (all.asks || !matches!(kind, Kind::Time | Kind::TimeTz | Kind::Float8)).then_some(all)
}

impl Comparison<'_> {
    /// Is the interval beside the column, if there is one, made of constants and parameters, so that it does not ask for the time?
    pub fn has_known_interval(&self) -> bool {
        self.by.is_none_or(|by| closed(by).is_some_and(|found| !found.asks))
    }
}

/// Most clock expressions of a query.
pub const MOST: usize = 16;

/// The clock expressions of a query, in the order in which a walk has left them. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct ClockExpressions {
    nodes: [*mut pg_sys::Node; MOST],
    /// What the comparison splits that an expression is a side of.
    splits: [Option<Split>; MOST],
    /// The fixed columns beside these comparisons, if any has some: those of one relation, since every query that is hashed carries this.
    fixed: Fixed,
    count: usize,
    /// Texts become dates (`eligibility`, coercions), or ages are counted from today.
    reads_day: bool,
}

/// How much had been noted at some moment of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClockMark {
    count: usize,
    reads_day: bool,
}

impl ClockExpressions {
    /// None yet.
    pub const NONE: Self = Self {
        nodes: [std::ptr::null_mut(); MOST],
        splits: [None; MOST],
        fixed: Fixed::NONE,
        count: 0,
        reads_day: false,
    };

    /// Notes that texts become dates, which may be words such as `today`, or that ages are counted from today: CURRENT_DATE is one more
    /// expression.
    pub fn note_day(&mut self) {
        self.reads_day = true;
    }

    /// Is CURRENT_DATE one more expression?
    pub fn reads_day(&self) -> bool {
        self.reads_day
    }

    /// How many there are with that.
    pub fn total(&self) -> usize {
        self.count + usize::from(self.reads_day)
    }

    /// How many there are that stand in the query. There may be more than are kept.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How much has been noted so far.
    pub fn mark(&self) -> ClockMark {
        ClockMark { count: self.count, reads_day: self.reads_day }
    }

    /// Forgets what was noted since: the walk leaves a column of a sub-query that nothing uses. There are no fixed
    /// columns in sub-queries.
    pub fn go_back(&mut self, before: ClockMark) {
        (self.count, self.reads_day) = (before.count, before.reads_day);
    }

    /// Notes a node that the walk leaves: it asks for the time itself, or there were fewer expressions, `before`, when the walk came to it.
    /// If it is one expression with what was found below, it takes the place of that.
    #[inline(never)]
    pub fn leave(&mut self, node: Tree<'_, pg_sys::Node>, before: usize) {
        let found = self.nodes.get(before..self.count.min(MOST)).unwrap_or(&[]);
        if closed_above(node, found, 0).is_some_and(|closed| closed.asks) {
            if let Some(place) = self.nodes.get_mut(before) {
                *place = node.as_ptr();
                self.splits[before] = None;
            }
            self.count = before + 1;
        }
    }

    /// Notes that the walk leaves a call of an operator, below which one expression was found and `before` elsewhere. If that is compared
    /// with a column, its value says no more than which rows it splits off. `query` tells the query as many levels up, and `beside` which columns are
    /// fixed beside a comparison.
    #[inline(never)]
    pub fn compare<'t, Q: Fn(u32) -> Option<Tree<'t, pg_sys::Query>>>(
        &mut self,
        call: Tree<'t, pg_sys::OpExpr>,
        before: usize,
        query: Q,
        beside: impl Fn(&Comparison<'t>, &Q) -> Fixed,
    ) {
        if self.count == before + 1
            && let Some(expression) = self.nodes.get(before)
            && let Some(comparison) = Comparison::of(call, Some(*expression), &query)
            && comparison.has_known_interval()
        {
            let fixed = beside(&comparison, &query);
            if self.fixed == Fixed::NONE {
                self.fixed = fixed;
            }
            let columns = if self.fixed == fixed { fixed.columns } else { Fixed::NONE.columns };
            self.splits[before] = Some(Split { fixed: columns, ..comparison.split });
            if comparison.by.is_some() {
                // The program needs the interval, too.
                self.nodes[before] = comparison.call;
            }
        }
    }

    /// The fixed columns of those splits that have some.
    pub fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    /// The expressions, if all of them were kept, each with what it splits.
    pub fn all(&self) -> Option<impl Iterator<Item = (*mut pg_sys::Node, Option<Split>)>> {
        let nodes = self.nodes.get(..self.count)?;
        Some(nodes.iter().copied().zip(self.splits))
    }
}
