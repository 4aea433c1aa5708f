#include "containers/compiled_filter.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "containers/container_plan.hpp"
#include "containers/runtime.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

const std::string kProgram(16, 'p');

class CompiledFilters : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(os::write_file(runtime_, "one")); }
  void TearDown() override { EXPECT_TRUE(os::remove_all(runtime_root() + "/" + container())); }

  std::string container() const { return "filter-test-" + std::to_string(::getpid()); }
  std::string programs() const { return directory_.path() + "/filters"; }
  CompiledFilter of(const Json& filter) const { return {filter, runtime_, programs()}; }
  // Writes the compiled filter of a container, as the runtime does.
  bool compile(const std::string& program) const {
    const std::string state = runtime_root() + "/" + container();
    return os::make_directories(state, 0700) &&
           os::write_file(state + "/" + kRuntimeFilter, program, 0700);
  }

  const os::TemporaryDirectory directory_;
  const std::string runtime_ = directory_.path() + "/runtime";
};

TEST_F(CompiledFilters, AreCachedPerFilter) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(of({{"a", 1}}).read(), "");
  ASSERT_TRUE(compile(kProgram));
  of({{"a", 1}}).store(container());
  EXPECT_EQ(of({{"a", 1}}).read(), kProgram);
  EXPECT_EQ(of({{"a", 2}}).read(), "");
}

TEST_F(CompiledFilters, AreCompiledAgainForAnotherRuntime) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(compile(kProgram));
  of({}).store(container());
  EXPECT_EQ(of({}).read(), kProgram);
  ASSERT_TRUE(os::write_file(runtime_, "three"));
  EXPECT_EQ(of({}).read(), "");
}

TEST_F(CompiledFilters, AreNotReadIfOtherUsersCouldWriteThem) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(compile(kProgram));
  of({}).store(container());
  ASSERT_EQ(::chmod(programs().c_str(), 0770), 0);
  EXPECT_EQ(of({}).read(), "");
  ASSERT_EQ(::chmod(programs().c_str(), 0700), 0);
  EXPECT_EQ(of({}).read(), kProgram);
  ASSERT_EQ(::chown(programs().c_str(), 65534, 65534), 0);
  EXPECT_EQ(of({}).read(), "");
}

TEST_F(CompiledFilters, AreRejectedIfEmptyTruncatedOrTooLong) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  for (const std::string& program :
       {std::string(), std::string(7, 'p'), std::string(8 * 4097, 'p')}) {
    ASSERT_TRUE(compile(program));
    of({}).store(container());
    EXPECT_EQ(of({}).read(), "") << program.size();
  }
}

TEST_F(CompiledFilters, AreAllRemovedAtTheirLimit) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_TRUE(compile(kProgram));
  for (int number = 0; number < 40; ++number) {
    of({{"a", number}}).store(container());
    EXPECT_EQ(of({{"a", number}}).read(), kProgram);
  }
  const auto names = os::list_directory(programs());
  ASSERT_TRUE(names);
  EXPECT_LE(names->size(), 16U);
}

TEST_F(CompiledFilters, MayBeMissing) {
  of({}).store(container());
  EXPECT_EQ(of({}).read(), "");
}

}  // namespace
}  // namespace trainyard::containers
