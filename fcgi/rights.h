/* What each process gives up once it has started. One function a program. */
#ifndef HANJI_FCGI_RIGHTS_H
#define HANJI_FCGI_RIGHTS_H

/* The worker: nothing it could execute can gain privileges. */
void rights_worker(void);

#endif
