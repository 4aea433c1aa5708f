#include "postgres/connection.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"
#include "postgres/testing/test_server.hpp"

namespace trainyard::postgres {
namespace {

class PostgresConnection : public testing::Test {
 protected:
  std::unique_ptr<Connection> open() {
    auto connection = Connection::open({server_.url(database_)});
    EXPECT_TRUE(connection) << connection.error().message;
    return *std::move(connection);
  }
  TestServer& server_ = TestServer::shared();
  const std::string database_ = server_.new_database();
};

TEST_F(PostgresConnection, ReturnsStoredValuesExactly) {
  auto connection = open();
  ASSERT_TRUE(connection->run_script("CREATE TABLE t (i BIGINT, d DOUBLE PRECISION, t TEXT)"));
  const std::string text = "it's \"\xc3\xa9\" \\ $1\n";
  const auto insert = connection->run({"INSERT INTO t VALUES ($1, $2, $3), (NULL, NULL, $4)",
                                       {int64_t{-1} << 62, 1.0 / 3, text, nullptr}});
  ASSERT_TRUE(insert) << insert.error().message;
  EXPECT_EQ(insert->changed(), 2);
  const auto rows = connection->run({"SELECT i, d, t FROM t ORDER BY i"});
  ASSERT_EQ(rows->count(), 2u);
  EXPECT_EQ(rows->integer(0, 0), int64_t{-1} << 62);
  EXPECT_EQ(rows->real(0, 1), 1.0 / 3);
  EXPECT_EQ(rows->text(0, 2), text);
  EXPECT_TRUE(rows->empty(1, 0));
  EXPECT_FALSE(rows->empty(0, 0));
  EXPECT_EQ(connection->run({"SELECT $1::text", {std::string("a\0b", 3)}}).error().kind,
            Kind::invalid);
  EXPECT_TRUE(connection->run({"SELECT 1"})) << "the connection is still usable";
}

TEST_F(PostgresConnection, RunTogetherStopsAtTheFirstError) {
  auto connection = open();
  ASSERT_TRUE(connection->run_script("CREATE TABLE t (i BIGINT PRIMARY KEY)"));
  const auto insert = [](int64_t value) { return Query{"INSERT INTO t VALUES ($1)", {value}}; };
  const std::vector<Query> good{{"BEGIN"}, insert(1), insert(2), {"COMMIT"}};
  const auto answers = connection->run_together(good);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->size(), 4u);
  const std::vector<Query> bad{{"BEGIN"}, insert(3), insert(1), insert(4), {"COMMIT"}};
  const auto refused = connection->run_together(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::conflict) << refused.error().message;
  EXPECT_FALSE(connection->lost());
  ASSERT_TRUE(connection->run({"ROLLBACK"}));
  EXPECT_EQ(connection->run({"SELECT count(*) FROM t"})->integer(0, 0), 2);
}

// Sends more than fits in the buffers of the sockets, in both directions.
TEST_F(PostgresConnection, RunTogetherDoesNotBlockOnManyStatements) {
  auto connection = open();
  std::vector<Query> queries(20'000, {"SELECT $1::text", {std::string(200, 'x')}});
  const auto answers = connection->run_together(queries);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->size(), queries.size());
  EXPECT_EQ(answers->back().text(0, 0), std::string(200, 'x'));
}

TEST_F(PostgresConnection, ErrorsHaveKindsFaultsAndMessages) {
  auto connection = open();
  const auto absent = connection->run({"SELECT * FROM absent"});
  EXPECT_EQ(absent.error().kind, Kind::not_found);
  EXPECT_TRUE(absent.error().is(Fault::no_table));
  EXPECT_EQ(connection->run({"SELEC"}).error().kind, Kind::internal);
  auto nowhere = Connection::open({server_.url("nowhere")});
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("\"nowhere\" does not exist"), std::string::npos)
      << nowhere.error().message;
  auto unreachable = Connection::open({"postgresql://127.0.0.1:1/ledger?connect_timeout=2"});
  ASSERT_FALSE(unreachable);
  EXPECT_EQ(unreachable.error().kind, Kind::unavailable) << unreachable.error().message;
}

TEST_F(PostgresConnection, DeniesAWrongPassword) {
  for (const char* password : {"", "wrong"}) {
    const auto denied = Connection::open({server_.url(database_, "locked"), password});
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().kind, Kind::denied) << denied.error().message;
  }
  EXPECT_TRUE(Connection::open({server_.url(database_, "locked"), "correct"}));
}

TEST_F(PostgresConnection, ReportsAnEndedSessionAsLost) {
  auto connection = open();
  const auto pid = connection->run({"SELECT pg_backend_pid()"})->integer(0, 0);
  ASSERT_TRUE(open()->run({"SELECT pg_terminate_backend($1::int, 60000)", {pid}}));
  const auto lost = connection->run({"SELECT 1"});
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().is(Fault::lost)) << lost.error().message;
  EXPECT_TRUE(connection->lost());
  const std::vector<Query> more{{"SELECT 1"}};
  EXPECT_TRUE(connection->run_together(more).error().is(Fault::lost));
}

TEST_F(PostgresConnection, ReportsAnUnresponsiveServerAsLost) {
  auto connection = open();
  connection->set_answer_timeout(50ms);
  const auto late = connection->run({"SELECT pg_sleep(60)"});
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().is(Fault::lost)) << late.error().message;
}

// SilentServer accepts connections and never answers.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_.path() + "/.s.PGSQL.5432";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    socket_ = os::File(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        ::bind(socket_.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        0);
    EXPECT_EQ(::listen(socket_.descriptor(), 64), 0);
  }
  const std::string& directory() const { return directory_.path(); }

 private:
  os::TemporaryDirectory directory_;
  os::File socket_;
};

TEST_F(PostgresConnection, SkipsAnUnresponsiveHost) {
  const SilentServer silent;
  const auto at = [&](const std::string& hosts, const std::string& more = "") {
    return Connection::open({.url = "host=" + hosts + " user=postgres dbname=" + database_ + more,
                             .answer_timeout = 2s});
  };
  const std::string absent = "/nowhere";
  for (const char* ports : {"", " port=5432", " port=5432,5432,", " port=5432,5432,5432"}) {
    const auto found =
        at(silent.directory() + "," + absent + "," + server_.socket_directory(), ports);
    ASSERT_TRUE(found) << ports << ": " << found.error().message;
    EXPECT_TRUE((*found)->run({"SELECT 1"}));
    EXPECT_NE((*found)->label().find(" at " + server_.socket_directory()), std::string::npos);
  }
  const auto url = Connection::open({.url = "postgresql://postgres@/" + database_ + "?host=" +
                                            silent.directory() + "," + server_.socket_directory(),
                                     .answer_timeout = 2s});
  EXPECT_TRUE(url) << url.error().message;
  const auto none = at(silent.directory() + "," + absent);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Kind::unavailable);
  for (const std::string& part : {silent.directory() + " did not answer within 2000 ms", absent})
    EXPECT_NE(none.error().message.find(part), std::string::npos) << none.error().message;
  EXPECT_FALSE(at(absent + "," + server_.socket_directory(), " port=1,2,3")) << "rejected by libpq";
}

TEST(DescribeUrl, HasNoPassword) {
  EXPECT_EQ(*describe_url("postgresql://ann:secret@db.lan:5433/ledger"),
            "PostgreSQL database ledger at db.lan:5433");
  EXPECT_EQ(*describe_url("host=/run/pg dbname=l password=secret"),
            "PostgreSQL database l at /run/pg");
  const auto bad = describe_url("postgresql://ann:secret@[::1/ledger");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message.find("secret"), std::string::npos);
  EXPECT_EQ(*describe_url("postgresql://ann:se%2Fcret@db.lan,db2.lan:5433/ledger"),
            "PostgreSQL database ledger at db.lan,db2.lan:,5433");
  EXPECT_EQ(*describe_url("host=db dbname=a/b:c@d"), "PostgreSQL database a/b:c@d at db");
  // Unescaped characters end the password early, so no part of these URLs may be shown.
  for (const char* url : {"postgresql://ann:sec/ret@db/ledger", "postgresql://ann:1/ret@db/ledger",
                          "postgresql://ann:sec@ret@db/ledger", "postgres://ann:sec:ret/@db/ledger",
                          "postgresql://ann:12:3/ret@db"}) {
    const auto refused = describe_url(url);
    ASSERT_FALSE(refused) << url << ": " << *refused;
    EXPECT_NE(refused.error().message.find("percent-encoded"), std::string::npos) << url;
    for (const char* part : {"sec", "ret"})
      EXPECT_EQ(refused.error().message.find(part), std::string::npos) << refused.error().message;
    EXPECT_FALSE(Connection::open({url}));
  }
}

}  // namespace
}  // namespace trainyard::postgres
