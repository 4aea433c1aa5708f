#include "control/resource_records.hpp"

#include <gtest/gtest.h>

#include "os/temporary_directory.hpp"

namespace trainyard::control {
namespace {

batch::JobQueue queue_of(const std::string& name) {
  batch::JobQueue queue;
  queue.key = {"us-east-1", name};
  queue.priority = 3;
  return queue;
}

TEST(ResourceRecords, AreEqualAfterWritingAndReading) {
  batch::JobDefinition definition;
  definition.key = {"us-east-1", "train"};
  definition.revision = 7;
  definition.active = false;
  const ledger::ResourceRecord record = record_of(definition);
  EXPECT_EQ(record.kind, ledger::kDefinitionKind);
  EXPECT_EQ(record.revision, 7u);
  EXPECT_FALSE(record.active);
  const auto read = definitions_of({record});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->at(0).revision, 7u);
  const auto catalog = catalog_of({record_of(queue_of("q"))});
  ASSERT_TRUE(catalog) << catalog.error().message;
  EXPECT_EQ(catalog->queue({"us-east-1", "q"})->priority, 3);
}

TEST(ResourceRecords, NameTheKindOfAnUnreadableRecord) {
  ledger::ResourceRecord record = record_of(queue_of("q"));
  record.body = Json::array();
  EXPECT_FALSE(check_resource(record));
  const auto read = catalog_of({record});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, Kind::corrupt);
  EXPECT_TRUE(read.error().message.starts_with("ledger: the record of a job_queue: "))
      << read.error().message;
}

TEST(ResourceRecords, AreSetAsideIfUnreadable) {
  os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/ledger.db";
  ledger::Batch batch;
  for (const char* name : {"broken", "sound"})
    batch.resources.push_back({record_of(queue_of(name))});
  batch.resources.front().resource.body = Json::array();
  ASSERT_TRUE((*ledger::open_sqlite(path))->commit(batch));
  const auto ledger = ledger::open_sqlite(path, ledger::kCommandsMax, nullptr, check_resource);
  ASSERT_TRUE(ledger) << ledger.error().message;
  const auto catalog = catalog_of(*(*ledger)->resources());
  ASSERT_TRUE(catalog) << catalog.error().message;
  EXPECT_EQ(catalog->queues.size(), 1u);
  EXPECT_TRUE(catalog->queue({"us-east-1", "sound"}));
}

}  // namespace
}  // namespace trainyard::control
