# What the scripts about hot standbys share: a primary that does not preload the library, standbys that do, sessions that stay open
# on both, and cases: a change on the primary, and what it must and must not outdate on the standby.

package StandbyTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use ArrowCacheTest;

our @EXPORT = qw(new_primary new_standby session write_sql caught_up ask ask_plainly cached state try_cases);

# Aborts and hint bits are flushed by the WAL writer alone.
my $CONF = q{
max_connections = 40
max_prepared_transactions = 20
wal_writer_delay = 10ms
allow_in_place_tablespaces = on
};

# A primary with the SQL objects of the extension, which its standbys get from it. It does not preload the library.
sub new_primary
{
	my ($name, %params) = @_;
	return new_server($name, init => { allows_streaming => 1, %{ $params{init} // {} } },
		conf => "$CONF\nshared_preload_libraries = ''\n" . ($params{conf} // ''));
}

# A started standby of a primary, or of another standby, which preloads the library. `conf` is appended to its settings.
sub new_standby
{
	my ($name, $source, %params) = @_;
	$source->backup($name);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($source, $name, has_streaming => 1);
	my $libraries = $params{libraries} // 'pg_arrow_cache';
	$standby->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n" . ($params{conf} // ''));
	$standby->start;
	return $standby;
}

# A session that stays open. Errors do not end it. A notice would look like one.
sub session
{
	my ($node, $before, $database) = @_;
	my $session = $node->background_psql($database // 'postgres', on_error_stop => 0);
	$session->set_query_timer_restart;
	$session->query_safe($_) for 'SET client_min_messages = error', $before // ();
	return $session;
}

# Runs statements in a session, which must succeed. A statement with a semicolon inside is passed as one by psql if the semicolon
# is quoted.
sub write_sql
{
	my ($session, @statements) = @_;
	$session->query_safe($_) for @statements;
	return;
}

# Waits until the sessions' standbys have replayed what the writer's server has written, aborts and hint bits included. A record
# that is flushed at its commit is written, since its end is surely one that a standby can reach.
sub caught_up
{
	my ($writer, @readers) = @_;
	my $lsn = $writer->query_safe(q{SELECT pg_logical_emit_message(true, 'test', 'caught up')});
	for my $reader (@readers)
	{
		my $rounds = 200 * $PostgreSQL::Test::Utils::timeout_default;
		until ($reader->query_safe("SELECT pg_last_wal_replay_lsn() >= '$lsn'") eq 't')
		{
			die "$lsn is not replayed" if $rounds-- == 0;
			usleep(5_000);
		}
	}
	return;
}

# Rows, or the error, of a query in a session.
sub ask_plainly
{
	my ($session, $query) = @_;
	$session->{stderr} = '';
	my $rows = $session->query($query);
	my ($error) = $session->{stderr} =~ /(ERROR:.*)/;
	$session->{stderr} = '';
	return $error // $rows;
}

# The same, and what the cache says about it.
sub ask
{
	my ($session, $query) = @_;
	my $answer = ask_plainly($session, $query);
	return ($answer, 'ERROR') if $answer =~ /^ERROR/;
	my $status =
	  $session->query_safe(q{SELECT arrow_cache.last_status() || coalesce(' ' || arrow_cache.last_reason(), '')});
	return ($answer, $status);
}

# Asks until the answer is served from the cache, which the third one must be. Returns the rows.
sub cached
{
	my ($session, $query, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($rows, $status, @seen);
	for (1 .. 3)
	{
		($rows, $status) = ask($session, $query);
		push @seen, $status;
		last if $status eq 'HIT';
	}
	is($status, 'HIT', "$name: cached") or diag("$query: @seen");
	return $rows;
}

# What the standby says of its replay.
sub state
{
	my ($node) = @_;
	return stat($node, 'standby_state');
}

# Tries cases one after the other. `on` has a node and sessions: `writer` on the primary, `first` and `second` on the standby, with
# the cache, and `plain` there without it. A case is a hash:
#   name     what changes
#   setup    statements of the writer before; {t} stands for a table of ten rows that each case has, {n} for a number of its own
#   query    what is asked; the sum of {t} if nothing is said
#   role     who asks
#   before   statements of both readers and the plain session, such as SET search_path
#   change   statements of the writer, or a function
#   after    `outdated` (nothing is said): the answer is executed; `kept`: it is still a hit; `either`
#   same     the change leaves the answer as it is; nothing said: it does so if it is `kept`
#   others   what becomes of an answer over another table: `kept` if nothing is said, `outdated`, or `either`
#   steps    more changes after the first, each a hash with `change`, `after`, `same`, `others`; the answer is cached in between
my $number = 0;

sub try_cases
{
	my ($on, @cases) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	for my $case (@cases)
	{
		$number++;
		my $fill_in = sub { return $_[0] =~ s/\{t\}/t$number/gr =~ s/\{n\}/$number/gr };
		write_sql($on->{writer}, map { $fill_in->($_) } 'CREATE TABLE {t} (id int PRIMARY KEY, v int)',
			'INSERT INTO {t} SELECT g, g FROM generate_series(1, 10) g', @{ $case->{setup} // [] });
		caught_up($on->{writer}, $on->{first});
		my @askers = @$on{qw(first second plain)};
		my @before = map { $fill_in->($_) } @{ $case->{before} // [] }, $case->{role} ? "SET ROLE $case->{role}" : ();
		write_sql($_, @before) for @askers;
		try_step($on, $_, $fill_in->($case->{query} // 'SELECT count(*), sum(v) FROM {t}'), $fill_in,
			$_ == $case ? $case->{name} : "$case->{name}, $_->{name}")
		  for $case, @{ $case->{steps} // [] };
		write_sql($_, @before ? 'RESET ROLE; RESET search_path' : ()) for @askers;
	}
	return;
}

my $OTHERS = 'SELECT sum(v) FROM untouched';

sub try_step
{
	my ($on, $step, $query, $fill_in, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($first, $second, $plain) = @$on{qw(first second plain)};
	my $old = cached($first, $query, $name);
	is_deeply([ ask($second, $query) ], [ $old, 'HIT' ], "$name: served to another session");
	cached($second, $OTHERS, "$name: another table");

	ref $step->{change} eq 'CODE' ? $step->{change}->($fill_in) : write_sql($on->{writer}, map { $fill_in->($_) } @{ $step->{change} });
	caught_up($on->{writer}, $first);

	my ($other_rows, $other_status) = ask($second, $OTHERS);
	fate_is($other_status, $step->{others} // 'kept', "$name: another table");
	my $new = ask_plainly($plain, $query);
	my $after = $step->{after} // 'outdated';
	my ($rows, $status) = ask($first, $query);
	is($rows, $new, "$name: the rows are those of the standby without the cache");
	fate_is($status, $after, $name);
	is((ask($second, $query))[0], $new, "$name: so they are in another session");
	my $same = $step->{same} // ($after eq 'kept');
	ok($same ? $new eq $old : $new ne $old, "$name: the change shows") or diag("before $old, after $new");
	return;
}

sub fate_is
{
	my ($status, $fate, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($status, 'HIT', "$name: kept") if $fate eq 'kept';
	return like($status, qr/^(?:STALE|MISS(?: old_plan)?|ERROR)$/, "$name: outdated") if $fate eq 'outdated';
	return;
}

1;
