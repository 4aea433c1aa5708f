#include "postgres/connection.hpp"

#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "postgres/pq_library.hpp"

namespace trainyard::postgres {
namespace {

constexpr const char* kDefaultPort = "5432";

struct Clear {
  void operator()(PGresult* result) const { pq().PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, Clear>;

// Joins the lines of a message of libpq into one.
std::string message_of(const char* message) {
  std::string text;
  for (const std::string_view line : split(message ? message : "", '\n'))
    if (!trim(line).empty()) text += (text.empty() ? "" : " ") + std::string(trim(line));
  return text;
}

struct ErrorClass {
  std::string_view state;  // prefix of SQLSTATEs
  Kind kind;
  ErrorDetail detail = {};
};
// The first row that matches applies.
const ErrorClass kErrorClasses[] = {
    {"55P03", Kind::unavailable, Fault::lock},
    {"57P0", Kind::unavailable, Fault::lost},   // session ended, or server shutting down
    {"25P03", Kind::unavailable, Fault::lost},  // idle in a transaction for too long
    {"08", Kind::unavailable, Fault::lost},
    {"42P01", Kind::not_found, Fault::no_table},
    {"3F000", Kind::not_found, Fault::no_table},
    {"3D000", Kind::not_found},
    {"42501", Kind::denied},
    {"28", Kind::denied},
    {"23", Kind::conflict},
    {"40", Kind::unavailable},  // deadlock, serialization
    {"53", Kind::exhausted},
    {"57014", Kind::cancelled},
    {"22021", Kind::invalid},
    {"25006", Kind::unavailable},  // a replica, which is read-only
    {"XX001", Kind::corrupt},
    {"XX002", Kind::corrupt},
};

Error error_of(const PGresult* result, std::string_view doing) {
  const char* found = pq().PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = found ? found : "";
  const char* primary = pq().PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  std::string text = message_of(primary ? primary : pq().PQresultErrorMessage(result));
  if (const char* more = pq().PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL))
    text += " (" + message_of(more) + ")";
  Error error{Kind::internal, shorten(doing, 200) + ": " + text, {}};
  for (const ErrorClass& each : kErrorClasses) {
    if (!state.starts_with(each.state)) continue;
    error.kind = each.kind;
    error.detail = each.detail;
    break;
  }
  return error;
}

bool is_error(const PGresult* result) {
  const auto status = pq().PQresultStatus(result);
  return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY;
}

std::string text_of(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

// The parameters of a statement in libpq's form.
struct Parameters {
  std::vector<std::string> texts;
  std::vector<const char*> pointers;
};

Result<Parameters> parameters_of(const Query& query) {
  Parameters parameters;
  parameters.texts.reserve(query.values.size());
  for (const Value& value : query.values) {
    const bool is_null = std::holds_alternative<std::nullptr_t>(value);
    if (const auto* number = std::get_if<int64_t>(&value))
      parameters.texts.push_back(std::to_string(*number));
    else if (const auto* real = std::get_if<double>(&value))
      parameters.texts.push_back(text_of(*real));
    else if (const auto* text = std::get_if<std::string>(&value))
      parameters.texts.push_back(*text);
    else
      parameters.texts.emplace_back();
    if (parameters.texts.back().find('\0') != std::string::npos)
      return invalid("a value for PostgreSQL contains a NUL byte: " +
                     shorten(to_utf8(parameters.texts.back()), 100));
    parameters.pointers.push_back(is_null ? nullptr : parameters.texts.back().c_str());
  }
  return parameters;
}

// The parts of a URL. Each may be "" or a comma-separated list.
struct Target {
  std::string host, address, port, database;
};

std::string label_of(const Target& target) {
  const std::string& host = target.host.empty() ? target.address : target.host;
  return "PostgreSQL database " +
         (target.database.empty() ? "of the environment" : target.database) + " at " +
         (host.empty() ? "the default host" : host) +
         (target.port.empty() ? "" : ":" + target.port);
}

// Returns true if a password with an unescaped character may have ended the part of the URL that
// libpq reads as user and password. The rest of the password is then in the other parts.
bool may_show_password(const std::string& url, const Target& target) {
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://")) return false;
  // A host that starts with '@' is an abstract unix socket.
  return target.database.find_first_of("@:/") != std::string::npos ||
         target.host.find('@', 1) != std::string::npos ||
         target.port.find_first_not_of("0123456789,") != std::string::npos;
}

Result<Target> target_of(const std::string& url) {
  char* problem = nullptr;
  PQconninfoOption* parsed = pq().PQconninfoParse(url.c_str(), &problem);
  if (!parsed) {
    pq().PQfreemem(problem);  // not shown: it may quote a password
    return invalid(
        "invalid PostgreSQL URL: use postgresql://USER@HOST:PORT/DATABASE, or \"host=.. dbname=.. "
        "user=..\"");
  }
  Target target;
  for (const PQconninfoOption* each = parsed; each->keyword; ++each) {
    const std::string_view keyword = each->keyword;
    const std::string value = each->val ? each->val : "";
    if (keyword == "host") target.host = value;
    if (keyword == "hostaddr") target.address = value;
    if (keyword == "port") target.port = value;
    if (keyword == "dbname") target.database = value;
  }
  pq().PQconninfoFree(parsed);
  if (may_show_password(url, target))
    return invalid(
        "invalid PostgreSQL URL: the host or database has one of the characters @ : /, or the port "
        "is invalid (not shown here, because it may be a part of the password). If the password "
        "has such a character, write it percent-encoded (%40, %3A, %2F), or use password_file");
  return target;
}

// Splits a target into one target for each host, so that each host has its own time limit. libpq
// itself would wait for an unresponsive host without a limit.
std::vector<Target> hosts_of(const Target& target) {
  const auto items = [](const std::string& list) { return split(list, ','); };
  const auto hosts = items(target.host), addresses = items(target.address),
             ports = items(target.port);
  const size_t count = target.address.empty() ? hosts.size() : addresses.size();
  const auto fits = [&](const std::string& list, size_t size) {
    return list.empty() || size == count;
  };
  // Lists of different lengths are not split: libpq reports them as an error.
  if (count < 2 || !fits(target.host, hosts.size()) ||
      !(fits(target.port, ports.size()) || ports.size() == 1))
    return {target};
  std::vector<Target> found;
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](const std::string& list, const auto& each) {
      return list.empty() ? std::string() : std::string(each[each.size() == 1 ? 0 : i]);
    };
    found.push_back({at(target.host, hosts), at(target.address, addresses), at(target.port, ports),
                     target.database});
    // For an empty text libpq would use the whole list.
    Target& last = found.back();
    if (last.host.empty() && last.address.empty()) return {target};
    if (!target.port.empty() && last.port.empty()) last.port = kDefaultPort;
  }
  return found;
}

}  // namespace

void Rows::Clear::operator()(pg_result* result) const { pq().PQclear(result); }

size_t Rows::count() const { return size_t(pq().PQntuples(result_.get())); }
int Rows::columns() const { return pq().PQnfields(result_.get()); }
bool Rows::empty(size_t row, int column) const {
  return pq().PQgetisnull(result_.get(), int(row), column) == 1;
}
int64_t Rows::integer(size_t row, int column) const {
  int64_t value = 0;
  const char* text = pq().PQgetvalue(result_.get(), int(row), column);
  std::from_chars(text, text + std::strlen(text), value);
  return value;
}
double Rows::real(size_t row, int column) const {
  double value = 0;
  const char* text = pq().PQgetvalue(result_.get(), int(row), column);
  std::from_chars(text, text + std::strlen(text), value);
  return value;
}
std::string Rows::text(size_t row, int column) const {
  return std::string(pq().PQgetvalue(result_.get(), int(row), column),
                     size_t(pq().PQgetlength(result_.get(), int(row), column)));
}
int64_t Rows::changed() const {
  const auto number = parse_int(pq().PQcmdTuples(result_.get()));
  return number ? *number : 0;
}

Connection::Connection(PGconn* connection, const ConnectionSettings& settings)
    : connection_(connection), answer_timeout_(settings.answer_timeout) {}

Connection::~Connection() { pq().PQfinish(connection_); }

Result<std::unique_ptr<Connection>> Connection::open(const ConnectionSettings& settings) {
  const std::vector<Target> hosts = hosts_of(TRY(target_of(settings.url)));
  std::string before;
  for (size_t i = 0;; ++i) {
    auto opened = open_at(settings, hosts[i].host, hosts[i].address, hosts[i].port);
    // As in libpq, no other host is tried after a server has rejected the password.
    if (opened || opened.error().kind == Kind::denied) return opened;
    if (i + 1 == hosts.size()) {
      Error error = std::move(opened).error();
      error.message = before + error.message;
      return error;
    }
    before += opened.error().message + "; ";
  }
}

// Connects to one host. `host`, `address` and `port` replace those of the URL, unless they are "".
Result<std::unique_ptr<Connection>> Connection::open_at(const ConnectionSettings& settings,
                                                        const std::string& host,
                                                        const std::string& address,
                                                        const std::string& port) {
  const std::string database = TRY(target_of(settings.url)).database;
  const Target target{host, address, port, database};
  // The later ones take precedence over the URL, unless they are "".
  const std::pair<const char*, std::string> parameters[] = {
      {"dbname", settings.url},
      {"client_encoding", "UTF8"},
      {"host", host},
      {"hostaddr", address},
      {"port", port},
      {"application_name", settings.application},
      {"password", settings.password}};
  std::vector<const char*> names, values;
  for (const auto& [name, value] : parameters) {
    names.push_back(name);
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* started =
      pq().PQconnectStartParams(names.data(), values.data(), 1);  // 1: dbname may be a URL
  if (!started) return exhausted("connecting to PostgreSQL: out of memory");
  std::unique_ptr<Connection> connection(new Connection(started, settings));
  connection->label_ = label_of(target);
  TRY(connection->establish().in("connecting to " + connection->label_));
  return connection;
}

Result<void> Connection::establish() {
  const auto refused = [&] {
    const std::string text = message_of(pq().PQerrorMessage(connection_));
    lost_ = true;
    // libpq has no code for a rejected password.
    const bool password = pq().PQconnectionNeedsPassword(connection_) == 1 ||
                          pq().PQconnectionUsedPassword(connection_) == 1;
    return Error{password ? Kind::denied : Kind::unavailable, text, Fault::lost};
  };
  if (pq().PQstatus(connection_) == CONNECTION_BAD) return refused();
  for (PostgresPollingStatusType next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;
       next = pq().PQconnectPoll(connection_)) {
    if (next == PGRES_POLLING_FAILED) return refused();
    TRY(wait(next == PGRES_POLLING_WRITING));
  }
  pq().PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  if (pq().PQsetnonblocking(connection_, 1) != 0) return lose("preparing a connection");
  return {};
}

Error Connection::lose(std::string_view doing) {
  lost_ = true;
  const std::string why = message_of(pq().PQerrorMessage(connection_));
  return unavailable(std::string(doing) + ": the connection to " + label_ + " was lost" +
                         (why.empty() ? "" : ": " + why),
                     Fault::lost);
}

// Waits until the socket can be read or, if `to_write`, read or written.
Result<void> Connection::wait(bool to_write) {
  pollfd socket{pq().PQsocket(connection_), short(POLLIN | (to_write ? POLLOUT : 0)), 0};
  if (socket.fd < 0) return lose("waiting for PostgreSQL");
  int ready = 0;
  do ready = ::poll(&socket, 1, int(answer_timeout_.count()));
  while (ready < 0 && errno == EINTR);
  if (ready < 0) return lose("waiting for PostgreSQL");
  if (ready > 0) return {};
  lost_ = true;
  return unavailable(
      "the " + label_ + " did not answer within " + std::to_string(answer_timeout_ / 1ms) + " ms",
      Fault::lost);
}

// Sends buffered data. Reads meanwhile, because the server stops reading while its responses are
// not read.
Result<void> Connection::flush() {
  for (;;) {
    const int left = pq().PQflush(connection_);
    if (left == 0) return {};
    if (left < 0) return lose("sending a statement");
    TRY(wait(true));
    if (pq().PQconsumeInput(connection_) != 1) return lose("sending a statement");
  }
}

// Returns the next result; nullptr at the end of a statement.
Result<PGresult*> Connection::next_result() {
  while (pq().PQisBusy(connection_) == 1) {
    TRY(wait(false));
    if (pq().PQconsumeInput(connection_) != 1) return lose("reading an answer");
  }
  return pq().PQgetResult(connection_);
}

Result<Rows> Connection::only_result(int sent) {
  if (sent != 1) return lose("sending a statement");
  TRY(flush());
  Answer last;
  std::optional<Error> error;
  for (;;) {
    Answer next(TRY(next_result()));
    if (!next) break;
    if (is_error(next.get()) && !error) error = error_of(next.get(), "running a statement");
    last = std::move(next);
  }
  if (pq().PQstatus(connection_) == CONNECTION_BAD) {
    lost_ = true;
    if (!error) return lose("running a statement");
    error->detail = Fault::lost;
    error->kind = Kind::unavailable;
  }
  if (error) {
    lost_ = lost_ || error->is(Fault::lost);
    return *error;
  }
  CHECK(last, "a statement has a result");
  return Rows(last.release());
}

Result<std::string> Connection::prepare(const std::string& sql) {
  if (const auto found = prepared_.find(sql); found != prepared_.end()) return found->second;
  const std::string name = "s" + std::to_string(prepared_.size() + 1);
  TRY(only_result(pq().PQsendPrepare(connection_, name.c_str(), sql.c_str(), 0, nullptr))
          .in("preparing " + shorten(sql, 200)));
  prepared_.emplace(sql, name);
  return name;
}

Result<Rows> Connection::run(const Query& query) {
  if (lost_) return lose("running a statement");
  const Parameters parameters = TRY(parameters_of(query));
  const std::string name = TRY(prepare(query.sql));
  return only_result(pq().PQsendQueryPrepared(connection_, name.c_str(), int(query.values.size()),
                                              parameters.pointers.data(), nullptr, nullptr, 0))
      .in(shorten(query.sql, 200));
}

Result<Rows> Connection::run_once(const Query& query) {
  if (lost_) return lose("running a statement");
  const Parameters parameters = TRY(parameters_of(query));
  return only_result(pq().PQsendQueryParams(connection_, query.sql.c_str(),
                                            int(query.values.size()), nullptr,
                                            parameters.pointers.data(), nullptr, nullptr, 0))
      .in(shorten(query.sql, 200));
}

Result<void> Connection::run_script(const std::string& sql) {
  if (lost_) return lose("running statements");
  TRY(only_result(pq().PQsendQuery(connection_, sql.c_str())).in(shorten(sql, 200)));
  return {};
}

Result<std::vector<Rows>> Connection::run_together(std::span<const Query> queries) {
  if (lost_) return lose("running statements");
  std::vector<Parameters> parameters;
  parameters.reserve(queries.size());
  for (const Query& query : queries) {
    parameters.push_back(TRY(parameters_of(query)));
    TRY(prepare(query.sql));
  }
  if (pq().PQenterPipelineMode(connection_) != 1) return lose("running statements");
  for (size_t i = 0; i < queries.size(); ++i)
    if (pq().PQsendQueryPrepared(connection_, prepared_[queries[i].sql].c_str(),
                                 int(queries[i].values.size()), parameters[i].pointers.data(),
                                 nullptr, nullptr, 0) != 1)
      return lose("sending statements");
  if (pq().PQpipelineSync(connection_) != 1) return lose("sending statements");
  TRY(flush());
  auto answers = read_all(queries.size());
  if (!lost_ && pq().PQexitPipelineMode(connection_) != 1) return lose("running statements");
  return answers;
}

Result<std::vector<Rows>> Connection::read_all(size_t count) {
  std::vector<Rows> all;
  all.reserve(count);
  std::optional<Error> error;
  for (bool after_end = false;;) {
    Answer next(TRY(next_result()));
    if (!next) {
      // One nullptr marks the end of a statement; two in succession mark a lost connection.
      if (after_end || pq().PQstatus(connection_) == CONNECTION_BAD) break;
      after_end = true;
      continue;
    }
    after_end = false;
    const auto status = pq().PQresultStatus(next.get());
    if (status == PGRES_PIPELINE_SYNC) {
      if (error) {
        lost_ = lost_ || error->is(Fault::lost);
        return *error;
      }
      return all;
    }
    if (status == PGRES_PIPELINE_ABORTED) continue;
    if (is_error(next.get())) {
      if (!error) error = error_of(next.get(), "running statements");
    } else {
      all.emplace_back(next.release());
    }
  }
  lost_ = true;
  if (!error) return lose("running statements");
  error->kind = Kind::unavailable;
  error->detail = Fault::lost;
  return *error;
}

Result<std::string> describe_url(const std::string& url) { return label_of(TRY(target_of(url))); }

}  // namespace trainyard::postgres
