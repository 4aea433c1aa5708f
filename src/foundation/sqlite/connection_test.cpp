#include "sqlite/connection.hpp"

#include <gtest/gtest.h>

namespace trainyard::sqlite {
namespace {

std::unique_ptr<Connection> memory() { return *Connection::open(":memory:"); }

TEST(Connection, ReturnsStoredValues) {
  const auto connection = memory();
  ASSERT_TRUE(connection->run("CREATE TABLE things (a, b, c, d, e)"));
  const std::string text("with a \0 inside", 15), bytes("\xff\x00\xfe", 3);
  {
    auto insert = *connection->prepare("INSERT INTO things VALUES (?, ?, ?, ?, ?)");
    ASSERT_TRUE(insert.bind(int64_t{-7}).bind(2.5).bind(text).bind_bytes(bytes).bind_null().run());
    EXPECT_EQ(connection->changes(), 1);
    EXPECT_EQ(connection->last_row(), 1);
  }
  auto select = *connection->prepare("SELECT a, b, c, d, e, typeof(c), typeof(d) FROM things");
  ASSERT_TRUE(*select.step());
  EXPECT_EQ(select.integer(0), -7);
  EXPECT_EQ(select.real(1), 2.5);
  EXPECT_EQ(select.text(2), text);
  EXPECT_EQ(select.bytes(3), bytes);
  EXPECT_TRUE(select.empty(4) && select.bytes(4).empty() && !select.empty(3));
  EXPECT_EQ(select.text(5), "text");
  EXPECT_EQ(select.text(6), "blob");
  EXPECT_FALSE(*select.step());
}

TEST(Connection, ReusesPreparedStatements) {
  const auto connection = memory();
  for (const int64_t number : {1, 2}) {
    auto statement = *connection->prepare("SELECT ?");
    ASSERT_TRUE(*statement.bind(number).step());
    EXPECT_EQ(statement.integer(0), number);
  }
  auto unbound = *connection->prepare("SELECT ?");
  ASSERT_TRUE(*unbound.step());
  EXPECT_TRUE(unbound.empty(0)) << "earlier values are no longer bound";
  EXPECT_EQ(*connection->integer("SELECT 40 + 2"), 42);
}

TEST(Connection, ReportsErrorsByKind) {
  const auto connection = memory();
  const auto ours = connection->prepare("SELECT FROM WHERE");
  ASSERT_FALSE(ours);
  EXPECT_EQ(ours.error().kind, Kind::internal);
  EXPECT_NE(ours.error().message.find("SELECT FROM WHERE"), std::string::npos)
      << "contains the statement";
  ASSERT_TRUE(connection->run("CREATE TABLE one (a UNIQUE); INSERT INTO one VALUES (1)"));
  EXPECT_EQ(connection->run("INSERT INTO one VALUES (1)").error().kind, Kind::conflict);
  ASSERT_TRUE(connection->run("PRAGMA query_only = 1"));
  EXPECT_EQ(connection->run("INSERT INTO one VALUES (2)").error().kind, Kind::denied);
  EXPECT_EQ(connection->integer("SELECT a FROM one WHERE a = 9").error().kind, Kind::not_found);
  EXPECT_EQ(Connection::open("/no/such/folder/file", Access::read).error().kind, Kind::not_found);
}

TEST(Connection, ReportsColumnTypes) {
  const auto connection = memory();
  auto select =
      *connection->prepare_once("SELECT NULL AS a, 1 AS b, 1.5 AS c, 'x' AS d, x'00' AS e");
  using Holds = Statement::Holds;
  ASSERT_TRUE(*select.step());
  ASSERT_EQ(select.columns(), 5);
  EXPECT_EQ(select.column_name(3), "d");
  const Holds expected[] = {Holds::nothing, Holds::integer, Holds::real, Holds::text, Holds::bytes};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(select.holds(i), expected[i]) << i;
  EXPECT_TRUE(select.reads_only());
}

TEST(Connection, PreparesExactlyOneStatement) {
  const auto connection = memory();
  EXPECT_TRUE(connection->prepare_once("SELECT 1 ; "));
  EXPECT_EQ(connection->prepare_once("SELECT 1; DELETE FROM x").error().kind, Kind::invalid);
  EXPECT_EQ(connection->prepare_once("  ").error().kind, Kind::invalid);
}

TEST(Connection, ConfinesUntrustedStatements) {
  const auto connection = memory();
  bool may_continue = true;
  connection->confine({.reads_only = false, .may_continue = [&] { return may_continue; }});
  EXPECT_TRUE(connection->run("CREATE TABLE things (a)"));
  for (const char* statement :
       {"ATTACH '/tmp/confined_elsewhere.db' AS elsewhere", "PRAGMA journal_mode=OFF",
        "VACUUM INTO '/tmp/confined_elsewhere.db'", "SELECT load_extension('x')"})
    EXPECT_FALSE(connection->run(statement)) << statement;
  may_continue = false;
  const auto endless = connection->run(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
  EXPECT_EQ(endless.error().kind, Kind::cancelled);
  EXPECT_FALSE(connection->took_too_much_memory());
  connection->allow_transactions(false);
  for (const char* statement : {"BEGIN", "COMMIT", "SAVEPOINT a"})
    EXPECT_EQ(connection->run(statement).error().kind, Kind::denied) << statement;
}

TEST(Connection, ConfinedStatementsOnlyReadWithinTheLimits) {
  const auto connection = memory();
  ASSERT_TRUE(connection->run("CREATE TABLE things (a UNIQUE); INSERT INTO things VALUES (1)"));
  connection->confine({.may_continue = [] { return true; },
                       .memory_bytes_max = 8 << 20,
                       .value_bytes_max = 100'000});
  for (const char* statement :
       {"INSERT INTO things VALUES (2)", "UPDATE things SET a = 2", "DELETE FROM things",
        "DROP TABLE things", "CREATE TABLE other (a)", "CREATE TEMP TABLE other (a)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TEMP TRIGGER t AFTER INSERT ON things BEGIN SELECT 1; END",
        "ALTER TABLE things RENAME TO b", "CREATE VIRTUAL TABLE f USING fts5(a)",
        "CREATE INDEX i ON things (a)", "REINDEX things", "ANALYZE", "VACUUM",
        "PRAGMA user_version=7", "PRAGMA table_info(things)",
        "SELECT * FROM pragma_table_info('things')", "PRAGMA query_only=OFF",
        "PRAGMA writable_schema=ON", "UPDATE sqlite_master SET sql = ''",
        "ATTACH ':memory:' AS other", "DETACH main", "VACUUM INTO '/tmp/confined_elsewhere.db'",
        "SELECT load_extension('x')", "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/x', 'x')", "SELECT edit('x')", "SELECT fts3_tokenizer('simple')",
        "SELECT zeroblob(200000)", "SELECT hex(zeroblob(90000))",
        "SELECT 'a' LIKE printf('%.*c', 200, '%')",
        // A sort, a recursion and an aggregate that would each use a gigabyte.
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT "
        "zeroblob(90000) AS b FROM n ORDER BY b",
        "WITH RECURSIVE n(i, b) AS (SELECT 1, zeroblob(90000) UNION SELECT i + 1, b FROM n LIMIT "
        "20000) SELECT count(*) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT "
        "count(DISTINCT randomblob(90000)) FROM n"})
    EXPECT_FALSE(connection->run(statement)) << statement;
  EXPECT_TRUE(connection->took_too_much_memory());
  EXPECT_EQ(*connection->integer("SELECT sum(a) FROM things"), 1);
  EXPECT_EQ(*connection->integer("SELECT sum(value) FROM json_each('[1, 2]')"), 3);
  EXPECT_EQ(*connection->integer("SELECT json_extract('{\"a\": 7}', '$.a') + abs(-1)"), 8);
}

}  // namespace
}  // namespace trainyard::sqlite
