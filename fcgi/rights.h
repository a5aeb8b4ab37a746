/* What each process gives up once it has started. One function a program. */
#ifndef HANJI_FCGI_RIGHTS_H
#define HANJI_FCGI_RIGHTS_H

/* The worker: nothing it could execute can gain privileges. */
void rights_worker(void);

/* A process that has keys in its memory: it leaves no core, and nobody who is not root reads its
 * memory through /proc or ptrace. What /proc tells everybody (stat, statm, status) stays. */
void rights_secrets(void);

#endif
