#include "batch/catalog.hpp"

#include <gtest/gtest.h>

#include "batch/arn.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

ComputeEnvironment environment(const std::string& name, bool enabled = true) {
  ComputeEnvironment made;
  made.key = {"eu-west-1", name};
  made.enabled = enabled;
  return made;
}
JobQueue queue(const std::string& name, std::vector<std::string> environments,
               bool enabled = true) {
  JobQueue made;
  made.key = {"eu-west-1", name};
  made.enabled = enabled;
  made.environments = std::move(environments);
  return made;
}

TEST(Catalog, RejectsRemovingResourcesInUseOrEnabled) {
  Catalog catalog;
  put(catalog, ResourceChange::create, environment("on"));
  put(catalog, ResourceChange::create, environment("off", false));
  put(catalog, ResourceChange::create, environment("used", false));
  put(catalog, ResourceChange::create, queue("q", {"used"}));
  const auto why = [&](ResourceChange how, Resource resource) {
    const auto done = changed(catalog, nullptr, how, std::move(resource));
    return done ? std::string("done") : done.error().message;
  };
  EXPECT_EQ(why(ResourceChange::create, environment("on")), "Object already exists");
  EXPECT_EQ(why(ResourceChange::create, environment("new")), "done");
  EXPECT_EQ(why(ResourceChange::remove, environment("on")),
            "Cannot delete, resource must be disabled: on");
  EXPECT_EQ(why(ResourceChange::remove, environment("off")), "done");
  EXPECT_EQ(why(ResourceChange::remove, environment("used")),
            "Cannot delete, found existing JobQueue relationship: q");
  EXPECT_EQ(why(ResourceChange::update, environment("none")),
            "the compute environment none does not exist");
  EXPECT_EQ(why(ResourceChange::create, queue("p", {"none"})),
            "the compute environment none does not exist");
  EXPECT_EQ(why(ResourceChange::create, queue("q", {"on"})), "Object already exists");
  EXPECT_EQ(why(ResourceChange::update, queue("q", {"on"})), "done");
  EXPECT_EQ(why(ResourceChange::update, queue("p", {"on"})), "the job queue p does not exist");
  EXPECT_EQ(why(ResourceChange::remove, queue("q", {})),
            "Cannot delete, resource must be disabled: q");
  put(catalog, ResourceChange::update, queue("q", {"used"}, false));
  EXPECT_EQ(why(ResourceChange::remove, queue("q", {})), "done");
  put(catalog, ResourceChange::remove, queue("q", {}));
  EXPECT_EQ(why(ResourceChange::remove, environment("used")), "done");
}

TEST(Catalog, NumbersRevisionsOfDefinitionsByName) {
  JobDefinition definition;
  definition.key = {"eu-west-1", "train"};
  const auto first = changed({}, nullptr, ResourceChange::create, definition);
  ASSERT_TRUE(first);
  const auto& one = std::get<JobDefinition>(*first);
  EXPECT_EQ(one.revision, 1u);
  EXPECT_EQ(
      std::get<JobDefinition>(*changed({}, &one, ResourceChange::create, definition)).revision, 2u);
}

TEST(Catalog, WritesAndReadsResourcesUnchanged) {
  ComputeEnvironment one = environment("box", false);
  one.cpus_max = 12;
  one.request = {{"type", "MANAGED"}};
  JobQueue two = queue("q", {"box", "other"});
  two.priority = 7;
  JobDefinition three;
  three.key = {"eu-west-1", "train"};
  three.revision = 9;
  three.active = false;
  for (const Resource& resource : {Resource(one), Resource(two), Resource(three)}) {
    const auto read = resource_from_json(kind_of(resource), to_json(resource));
    ASSERT_TRUE(read) << kind_of(resource);
    EXPECT_EQ(to_json(*read), to_json(resource));
  }
  EXPECT_FALSE(resource_from_json("share", Json::object()));
}

TEST(BatchArn, HasANameOnlyForItsKind) {
  const std::string arn = arn_of("123456789012", "eu-west-1", kQueueArn, "q");
  EXPECT_EQ(arn, "arn:aws:batch:eu-west-1:123456789012:job-queue/q");
  EXPECT_EQ(name_in_arn(arn, kQueueArn), "q");
  EXPECT_EQ(name_in_arn("q", kQueueArn), "q");
  EXPECT_EQ(name_in_arn(arn, kEnvironmentArn), arn);
  EXPECT_EQ(definition_name("arn:aws:batch:eu-west-1:123456789012:job-definition/train:3"),
            "train");
}

}  // namespace
}  // namespace trainyard::batch
