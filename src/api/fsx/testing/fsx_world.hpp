// FsxWorld calls FSx's operations on real directories, an object store in memory that can be made
// to fail, and the loop that processes them.
//
// Threads: tests only; confined to the test's thread. The loop has its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "file_systems/loop.hpp"
#include "fsx/operations.hpp"
#include "objects/forwarding.hpp"
#include "objects/testing/damaged_objects.hpp"
#include "operations/testing/operation_caller.hpp"
#include "os/files.hpp"
#include "shapes/fsx.hpp"

namespace trainyard::api::fsx {

namespace aws = shapes::fsx;
using Texts = std::vector<std::string>;

// CutReader fails after the first byte of a body.
class CutReader final : public objects::Reader {
 public:
  explicit CutReader(std::unique_ptr<objects::Reader> whole) : whole_(std::move(whole)) {}
  const objects::ObjectInfo& info() const override { return whole_->info(); }
  objects::Range range() const override { return whole_->range(); }
  Result<size_t> read(std::span<char> buffer) override {
    if (std::exchange(cut_, true)) return unavailable("the connection was closed");
    return whole_->read(buffer.first(1));
  }

 private:
  std::unique_ptr<objects::Reader> whole_;
  bool cut_ = false;
};

// BrokenObjects fails, delays, denies, truncates or damages reads of keys, by the keys' prefixes.
class BrokenObjects final : public objects::ForwardingObjects {
 public:
  using ForwardingObjects::ForwardingObjects;
  std::atomic<bool> broken{false};
  std::atomic<bool> held{false};
  std::atomic<int> damaged{0};  // the number of further bodies to damage
  Result<std::unique_ptr<objects::Reader>> get(const std::string& bucket, const std::string& key,
                                               std::optional<objects::Range> range) override {
    if (broken && key.starts_with("broken/")) return unavailable("503 Slow Down");
    while (held && key.starts_with("held/")) std::this_thread::sleep_for(1ms);
    if (key.find("denied/") != key.npos) return denied("Access Denied");
    if (key.starts_with("cut/"))
      return std::unique_ptr<objects::Reader>(
          std::make_unique<CutReader>(TRY(ForwardingObjects::get(bucket, key, range))));
    auto reader = TRY(ForwardingObjects::get(bucket, key, range));
    if (key.starts_with("damaged/") && damaged-- > 0)
      reader = std::make_unique<objects::FlippingReader>(std::move(reader));
    return objects::verified(std::move(reader), "GET s3://" + bucket + "/" + key);
  }
};

// LockedControl is a control that several threads may use.
class LockedControl final : public in_memory::PlainControl {
 public:
  using PlainControl::PlainControl;
  std::atomic<bool> rejects_removals{false};  // fails changes that remove a record
  std::atomic<int> rejected{0};
  void change_records(control::RecordsRequest requested, control::RecordsAnswer answer) override {
    const MutexLock lock(mutex_);
    if (rejects_removals && std::ranges::any_of(requested.writes, [](const auto& each) {
          return !each.document.has_value();
        })) {
      ++rejected;
      return answer(unavailable("the ledger does not answer"));
    }
    PlainControl::change_records(std::move(requested), std::move(answer));
  }
  std::shared_ptr<const domain::Records> records() override {
    const MutexLock lock(mutex_);
    return PlainControl::records();
  }
  std::vector<std::shared_ptr<const domain::Job>> live_jobs() override {
    const MutexLock lock(mutex_);
    return PlainControl::live_jobs();
  }
  void set_job(const domain::Job& job) {
    const MutexLock lock(mutex_);
    jobs[job.key] = std::make_shared<domain::Job>(job);
  }

 private:
  Mutex mutex_;
};

struct FsxWorld : OperationsWorld {
  LockedControl records{clock};
  BrokenObjects store_of_objects{*objects};
  file_systems::FileSystems all;
  std::optional<file_systems::FileSystemLoop> loop;

  FsxWorld()
      : OperationsWorld(add_operations),
        all({.root = directory.path() + "/fsx", .boot = "boot"}, records) {
    services.file_systems = &all;
    EXPECT_TRUE(objects->create_bucket("data", "eu-west-1"));
    restart();
  }
  void restart() {
    loop.reset();
    loop.emplace(all, store_of_objects, clock);
  }
  void put(const std::string& key, const std::string& text = "x") {
    objects::PutOptions options;
    options.checksums["crc64nvme"] = "";
    EXPECT_TRUE(objects::write_all(*objects, "data", key, text, options));
  }
  std::string object(const std::string& key) {
    const auto text = objects::read_all(*objects, "data", key, 1 << 20);
    return text ? *text : "absent";
  }

  static aws::CreateFileSystemRequest request(const std::string& import = "") {
    aws::CreateFileSystemRequest in;
    in.file_system_type = "LUSTRE";
    in.storage_capacity = 3600;
    in.subnet_ids = Texts{"subnet-0123456789abcdef0"};
    if (!import.empty()) in.lustre_configuration.emplace().import_path = import;
    return in;
  }
  template <class Operation>
  typename Operation::Output made(const typename Operation::Input& in) {
    auto out = call<Operation>(in);
    EXPECT_TRUE(out) << (out ? "" : out.failure(*Operation::shape().service).message);
    return out ? *std::move(out) : typename Operation::Output();
  }
  std::string create(const aws::CreateFileSystemRequest& in) {
    const auto out = made<aws::CreateFileSystem>(in);
    return out.file_system ? *out.file_system->file_system_id : "";
  }
  aws::FileSystem describe(const std::string& id) {
    return made<aws::DescribeFileSystems>({.file_system_ids = Texts{id}}).file_systems->front();
  }
  // Waits until the loop has reached a condition.
  static void wait_for(const std::function<bool()>& reached) {
    for (int i = 0; i < 60'000 && !reached(); ++i) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(reached());
  }
  aws::FileSystem settled(const std::string& id) {
    wait_for([&] { return describe(id).lifecycle != "CREATING"; });
    return describe(id);
  }
  std::string file(const std::string& id, const std::string& path) {
    const auto text = os::read_file(directory.path() + "/fsx/" + id + "/files/" + path);
    return text ? *text : "absent";
  }
  aws::DataRepositoryTask run(const std::string& id, const std::string& type,
                              const std::string& report = "") {
    aws::CreateDataRepositoryTaskRequest in;
    in.file_system_id = id;
    in.type = type;
    in.report = {.enabled = !report.empty()};
    if (!report.empty())
      in.report = {.enabled = true,
                   .path = report,
                   .format = "REPORT_CSV_20191124",
                   .scope = "FAILED_FILES_ONLY"};
    const auto task = *made<aws::CreateDataRepositoryTask>(in).data_repository_task->task_id;
    const auto find = [&] {
      return made<aws::DescribeDataRepositoryTasks>({.task_ids = Texts{task}})
          .data_repository_tasks->front();
    };
    wait_for([&] { return find().end_time.has_value(); });
    return find();
  }
};

}  // namespace trainyard::api::fsx
