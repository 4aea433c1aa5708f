// Tests the embedded catalogue against hostile statements: queries only read, changes only change
// tables, and both have limits.
#include "campaign/catalogue.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::campaign {
namespace {

class EmbeddedCatalogue : public testing::Test {
 protected:
  EmbeddedCatalogue() {
    EXPECT_TRUE(catalogue_->change("INSERT INTO datasets (name, bytes) VALUES ('a', 1), ('b', 2)"));
  }
  Result<QueryResult> query(const std::string& sql) {
    return catalogue_->query(sql,
                             {{"prices", {"region TEXT", "price DOUBLE PRECISION"}, {{"a", 0.5}}}});
  }
  TestClock clock_;
  os::TemporaryDirectory directory_;
  std::unique_ptr<Catalogue> catalogue_ =
      std::move(*open_sqlite_catalogue(directory_.path() + "/catalogue.db", clock_));
};

TEST_F(EmbeddedCatalogue, QueriesPermanentAndProvidedTables) {
  const auto answer = *query("SELECT name, bytes, price FROM datasets, prices ORDER BY name DESC");
  EXPECT_EQ(answer.columns, (std::vector<std::string>{"name", "bytes", "price"}));
  EXPECT_EQ(answer.rows, (std::vector<std::vector<Json>>{{"b", 2, 0.5}, {"a", 1, 0.5}}));
  EXPECT_EQ(query("WITH n AS (SELECT sum(bytes) AS s FROM datasets) SELECT s, json_array(s) FROM n")
                ->rows[0][1],
            "[3]");
}

TEST_F(EmbeddedCatalogue, AllowsTableValuedFunctionsInQueries) {
  EXPECT_EQ(
      query("SELECT 'lr ' || lr.value AS name, lr.value AS lr FROM json_each('[1, 2, 3]') AS lr")
          ->rows.size(),
      3u);
  EXPECT_EQ(query("SELECT count(*) FROM json_tree('{\"a\": [1, 2]}')")->rows[0],
            std::vector<Json>{4});
}

TEST_F(EmbeddedCatalogue, RejectsQueriesThatWriteOrAccessOtherFiles) {
  const std::string other = directory_.path() + "/other.db";
  for (const std::string& sql :
       {std::string("DELETE FROM datasets"),
        std::string("INSERT INTO datasets (name) VALUES ('c')"),
        std::string("INSERT INTO datasets (name) VALUES ('c') RETURNING name"),
        std::string("UPDATE datasets SET bytes = 7"),
        std::string("DROP TABLE datasets"),
        std::string("DELETE FROM prices"),
        std::string("CREATE TABLE x (a)"),
        std::string("CREATE TEMP TABLE x (a)"),
        std::string("CREATE VIRTUAL TABLE x USING fts5(a)"),
        "ATTACH '" + other + "' AS other",
        std::string("DETACH main"),
        "VACUUM INTO '" + other + "'",
        std::string("PRAGMA user_version = 7"),
        std::string("PRAGMA writable_schema = 1"),
        std::string("PRAGMA query_only = 0"),
        std::string("PRAGMA database_list"),
        std::string("SELECT * FROM pragma_database_list"),
        std::string("SELECT load_extension('" + other + "')"),
        std::string("SELECT readfile('/etc/hostname')"),
        "SELECT writefile('" + other + "', 'x')",
        std::string("SELECT edit('x')"),
        std::string("SELECT fts3_tokenizer('simple')"),
        std::string("SELECT 1; DELETE FROM datasets"),
        std::string("BEGIN"),
        std::string("COMMIT"),
        std::string("EXPLAIN DELETE FROM datasets"),
        std::string("")})
    EXPECT_FALSE(query(sql)) << sql;
  EXPECT_FALSE(os::exists(directory_.path() + "/other.db"));
  EXPECT_EQ(query("SELECT sum(bytes), count(*) FROM datasets")->rows[0], (std::vector<Json>{3, 2}));
}

TEST_F(EmbeddedCatalogue, LimitsQueries) {
  const std::string endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) ";
  const std::string long_one =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) ";
  std::string wide = "SELECT 1";
  for (int i = 1; i < 1000; ++i) wide += ", 1";
  const std::pair<std::string, std::string> cases[] = {
      {long_one + "SELECT i FROM n", "rows"},
      {long_one + "SELECT printf('%.*c', 1000, 'x') FROM n", "answer has more than"},
      {long_one + wide + " FROM n", "answer has more than"},
      {long_one + "SELECT randomblob(10000) AS b FROM n ORDER BY b", "of memory"},
      {"SELECT zeroblob(100000000)", "too big"},
      {"SELECT hex(zeroblob(900000))", "too big"},
      {"SELECT 'a' LIKE printf('%.*c', 1000, '%')", "too complex"},
      {"SELECT '" + std::string(kStatementBytesMax, 'x') + "'", "the statement has more than"}};
  for (const auto& [sql, text] : cases) {
    const auto query_result = query(sql);
    ASSERT_FALSE(query_result) << sql.substr(0, 200);
    EXPECT_NE(query_result.error().message.find(text), std::string::npos)
        << query_result.error().message.substr(0, 300);
  }
  // Reading the clock advances it beyond a statement's time limit.
  class Jumping final : public Clock {
   public:
    Instant now() override { return {}; }
    std::chrono::nanoseconds monotonic() override { return at_ += 10s; }

   private:
    std::chrono::nanoseconds at_{};
  } jumping;
  const auto slow = std::move(*open_sqlite_catalogue(directory_.path() + "/slow.db", jumping));
  const auto query_result = slow->query(endless + "SELECT count(*) FROM n", {});
  ASSERT_FALSE(query_result);
  EXPECT_NE(query_result.error().message.find("took longer than"), std::string::npos)
      << query_result.error().message;
}

TEST_F(EmbeddedCatalogue, ConfinesAChangeToItsTablesAndOneTransaction) {
  const std::string other = directory_.path() + "/other.db";
  for (const std::string& sql :
       {"ATTACH '" + other + "' AS other", "VACUUM INTO '" + other + "'",
        std::string("PRAGMA journal_mode = OFF"), std::string("SELECT load_extension('x')"),
        std::string("CREATE VIRTUAL TABLE x USING fts5(a)"),
        std::string("INSERT INTO datasets (name) VALUES ('c'); COMMIT; INSERT INTO datasets (name) "
                    "VALUES ('a')"),
        std::string("INSERT INTO datasets (name) VALUES ('d'); ROLLBACK; BEGIN"),
        std::string("INSERT INTO datasets (name) VALUES ('e'); SAVEPOINT s"),
        std::string("UPDATE sqlite_master SET sql = ''")})
    EXPECT_FALSE(catalogue_->change(sql)) << sql;
  EXPECT_FALSE(os::exists(directory_.path() + "/other.db"));
  EXPECT_EQ(query("SELECT count(*) FROM datasets")->rows[0], std::vector<Json>{2});
  EXPECT_EQ(*catalogue_->change("CREATE TABLE mine (a); INSERT INTO mine VALUES (1), (2)"), 2);
  // A view has the rights of the query that reads it.
  EXPECT_TRUE(catalogue_->change("CREATE VIEW files AS SELECT load_extension('x') AS f"));
  EXPECT_FALSE(query("SELECT * FROM files"));
}

}  // namespace
}  // namespace trainyard::campaign
