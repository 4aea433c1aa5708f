// TestServer is a real PostgreSQL server for tests: a new cluster in a temporary directory. It is
// reachable only through a unix socket, and ends with the process of the test.
//
//   const std::string url = postgres::TestServer::shared().new_database();
//
// It runs Debian's programs (package postgresql-15), as the user postgres if the test is root.
//
// Threads: confined to one. Errors: a test failure that names the program and its output.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "os/temporary_directory.hpp"
#include "postgres/connection.hpp"

namespace trainyard::postgres {

class TestServer {
 public:
  // Returns the server of this process, which the first call starts.
  static TestServer& shared() {
    static TestServer server;
    return server;
  }

  TestServer() {
    find_programs();
    if (::getuid() == 0) {
      owner_ = ::getpwnam("postgres");
      if (!owner_) owner_ = ::getpwnam("nobody");
      if (::chown(directory_.path().c_str(), owner_->pw_uid, owner_->pw_gid) != 0)
        give_up("giving the directory to " + std::string(owner_->pw_name));
    }
    if (finish(spawn({programs_ + "/initdb", "--auth=trust", "--username=postgres", "--no-sync",
                      "--encoding=UTF8", "--locale=C", "-D", data()})) != 0)
      give_up("initdb");
    // The user `locked` needs its password.
    std::ofstream(data() + "/pg_hba.conf")
        << "local all locked scram-sha-256\nlocal all all trust\n";
    start();
    run("CREATE USER locked PASSWORD 'correct'");
  }
  TestServer(const TestServer&) = delete;
  ~TestServer() { stop(); }

  void start() {
    // Disables fsync, because these tests do not simulate power failures.
    server_ = spawn({programs_ + "/postgres", "-D", data(), "-k", directory_.path(), "-c",
                     "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=100"});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!Connection::open({url("postgres")})) {
      if (std::chrono::steady_clock::now() > deadline || ::waitpid(server_, nullptr, WNOHANG) != 0)
        give_up("postgres");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  // Ends all sessions at once, as a crash would.
  void stop() {
    if (server_ <= 0) return;
    ::kill(server_, SIGQUIT);
    finish(std::exchange(server_, 0));
  }

  std::string url(const std::string& database, const std::string& user = "postgres") const {
    return url_at(directory_.path(), database, user);
  }
  static std::string url_at(const std::string& socket_directory, const std::string& database,
                            const std::string& user = "postgres") {
    return "host=" + socket_directory + " dbname=" + database + " user=" + user;
  }
  const std::string& socket_directory() const { return directory_.path(); }
  std::string socket() const { return directory_.path() + "/.s.PGSQL.5432"; }

  // Makes an empty database and returns its name.
  std::string new_database() {
    const std::string name = "test_" + std::to_string(++databases_);
    run("CREATE DATABASE " + name);
    return name;
  }
  // Runs a statement as the superuser.
  void run(const std::string& sql, const std::string& database = "postgres") {
    auto connection = Connection::open({url(database)});
    ASSERT_TRUE(connection) << connection.error().message;
    const auto done = (*connection)->run_script(sql);
    ASSERT_TRUE(done) << done.error().message;
  }

 private:
  std::string data() const { return directory_.path() + "/data"; }

  void find_programs() {
    std::error_code none;
    std::vector<std::string> found;
    for (const auto& each : std::filesystem::directory_iterator("/usr/lib/postgresql", none))
      if (std::filesystem::exists(each.path() / "bin/initdb")) found.push_back(each.path() / "bin");
    if (found.empty()) give_up("finding initdb: install the package postgresql-15");
    programs_ = *std::max_element(found.begin(), found.end());
  }

  // Starts a program that ends when this process does.
  pid_t spawn(const std::vector<std::string>& arguments) {
    std::vector<char*> words;
    for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    const std::string log = directory_.path() + "/log";
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (owner_ && (::setgroups(0, nullptr) != 0 || ::setgid(owner_->pw_gid) != 0 ||
                   ::setuid(owner_->pw_uid) != 0))
      ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (::getppid() != parent || ::chdir("/") != 0) ::_exit(126);
    ::setenv("LC_ALL", "C", 1);
    if (!std::freopen(log.c_str(), "a", stdout) || !std::freopen(log.c_str(), "a", stderr))
      ::_exit(126);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  static int finish(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }
  [[noreturn]] void give_up(const std::string& doing) {
    std::ifstream log(directory_.path() + "/log");
    std::fprintf(stderr, "the PostgreSQL server for tests: %s failed: %s\n", doing.c_str(),
                 std::string(std::istreambuf_iterator<char>(log), {}).c_str());
    std::exit(1);
  }

  os::TemporaryDirectory directory_;
  std::string programs_;
  const passwd* owner_ = nullptr;
  pid_t server_ = 0;
  int databases_ = 0;
};

}  // namespace trainyard::postgres
