/* As root, before bubblewrap: shows the job's folders at a place that the job's user can reach, then becomes that user.
 *
 * bubblewrap opens what it binds after the user id was dropped, so a folder below a closed one (root's home, mode 0700)
 * would not exist for it. Here each source is bound, in a mount namespace of this process alone, to /tmp/0, /tmp/1, ...
 * in the order given, and nothing else of /tmp is left. The mounts vanish with the process. Running bubblewrap itself as
 * root and dropping the user inside was the alternative: it cannot use a user namespace with one mapped id, so all jobs
 * would share one process count, and the launcher would need capabilities inside.
 *
 * stage -u UID -g GID [-G group]... [-b source]... -- PROGRAM ARGUMENT...
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANY = 256 };

static void die(const char *what) {
    fprintf(stderr, "stage: %s: %s\n", what, strerror(errno));
    exit(125);
}

static void show(int source, int number) {
    char at[32], from[32];
    struct stat status;
    snprintf(at, sizeof at, "/tmp/%d", number);
    snprintf(from, sizeof from, "/proc/self/fd/%d", source);
    if (fstat(source, &status)) die("fstat");
    if (S_ISDIR(status.st_mode)) {
        if (mkdir(at, 0755)) die(at);
    } else {
        int fd = open(at, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0) die(at);
        close(fd);
    }
    if (mount(from, at, NULL, MS_BIND | MS_REC, NULL)) die("bind mount");
    close(source);
}

int main(int argc, char **argv) {
    uid_t uid = 0;
    gid_t gid = 0, groups[MANY];
    char *sources[MANY];
    int group_count = 0, source_count = 0, fds[MANY];
    for (int option; (option = getopt(argc, argv, "+u:g:G:b:")) != -1;) {
        if (group_count == MANY || source_count == MANY) errno = E2BIG, die("options");
        if (option == 'u') uid = (uid_t)atol(optarg);
        else if (option == 'g') gid = (gid_t)atol(optarg);
        else if (option == 'G') groups[group_count++] = (gid_t)atol(optarg);
        else if (option == 'b') sources[source_count++] = optarg;
        else exit(125);
    }
    if (!uid || !gid || !argv[optind]) errno = EINVAL, die("options");
    if (unshare(CLONE_NEWNS)) die("a mount namespace of its own");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("private mounts");
    for (int i = 0; i < source_count; i++)
        if ((fds[i] = open(sources[i], O_PATH | O_CLOEXEC)) < 0) die(sources[i]);
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m")) die("tmpfs");
    for (int i = 0; i < source_count; i++) show(fds[i], i);
    if (setgroups((size_t)group_count, groups) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)) die("user id");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("prctl");
    execv(argv[optind], argv + optind);
    die(argv[optind]);
}
