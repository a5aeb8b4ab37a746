// Makes the pages live: what others change appears, and forms are sent without loading the page
// anew. Everything works without it.
//
// What is replaced is the part #live, by that of the same page fetched again; a form outside of it,
// with what somebody is typing there, is left alone.
'use strict';

const app = document.body.dataset.app;
const OFFLINE_AFTER_MS = 3000, RETRY_MS = 2000;
const WORDS_OFFLINE = 'No connection. What you see may be old.';

const byId = id => document.getElementById(id);

// ---- what is said ----

// Where errors of a form are said: above its button, so that it is seen there; for those that are
// one button of a list, where the page says them.
function placeFor(form) {
  const place = byId('error');
  if (!form || form.contains(place) || form.closest('#live')) return place;
  let own = form.querySelector('.said');
  if (!own) {
    own = document.createElement('div');
    own.className = 'said';
    own.setAttribute('role', 'alert');
    form.insertBefore(own, form.querySelector(':scope > button'));
  }
  return own;
}

function showError(text, form) {
  for (const old of document.querySelectorAll('#error, .said')) old.textContent = '';
  const place = placeFor(form);
  if (!place || !text) return;
  const p = document.createElement('p');
  p.className = 'error';
  p.textContent = text;
  place.append(p);
  p.scrollIntoView({block: 'nearest'});
}

function showOffline(text) {
  const place = byId('offline');
  if (place.textContent === text) return;
  place.textContent = '';
  if (!text) return;
  const p = document.createElement('p');
  p.textContent = text;
  place.append(p);
}

const sayings = root => [...root.querySelectorAll('[data-say]')].map(one => one.dataset.say);

// What is new on the list, for those who do not see it; or what has gone.
function announce(before, after) {
  const fresh = after.filter(say => !before.includes(say));
  const gone = before.filter(say => !after.includes(say));
  const text = fresh.length ? fresh : gone.map(say => 'Gone: ' + say);
  if (text.length) byId('news').textContent = text.slice(0, 3).join('. ');
}

// ---- the live part ----

let pressing = false; // a finger is on it: it stays as it is until the finger has left
let waiting = null;

addEventListener('pointerdown', event => { pressing = Boolean(event.target.closest('#live')); });
for (const name of ['pointerup', 'pointercancel'])
  addEventListener(name, () => setTimeout(() => {
    pressing = false;
    if (waiting) swap(waiting);
  }, 50));

function swap(page) {
  const now = byId('live'), next = page.getElementById('live');
  if (pressing) {
    waiting = page;
    return;
  }
  waiting = null;
  const earlier = byId('earlier'), suggestions = page.getElementById('earlier');
  if (earlier && suggestions && earlier.innerHTML !== suggestions.innerHTML)
    earlier.replaceChildren(...suggestions.children);
  const who = document.querySelector('header'), whoNext = page.querySelector('header');
  if (who.innerHTML !== whoNext.innerHTML) who.replaceChildren(...whoNext.childNodes);
  if (!now || !next || now.innerHTML === next.innerHTML) return;
  const key = now.contains(document.activeElement) && document.activeElement.dataset.key;
  const before = sayings(now);
  now.replaceChildren(...next.childNodes);
  announce(before, sayings(now));
  if (key) {
    const same = now.querySelector('[data-key="' + key + '"]');
    if (same) same.focus({preventScroll: true});
    else focusOn(now);
  }
}

function focusOn(element) {
  element.tabIndex = -1;
  element.focus({preventScroll: true});
}

const parsed = text => new DOMParser().parseFromString(text, 'text/html');

let number = 0; // of the last request: an answer that comes late does not undo a later one

async function refresh() {
  const mine = ++number;
  const answer = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-store'});
  const text = await answer.text();
  if (mine === number && answer.ok) swap(parsed(text));
}

const refreshQuietly = () => { refresh().catch(() => {}); };

// ---- forms ----

const PHOTO_SIDE = 1600, PHOTO_BYTES = 400000;

// A photo of a telephone is larger than a receipt needs.
async function smaller(data) {
  const photo = data.get('photo');
  if (!(photo instanceof File) || photo.size <= PHOTO_BYTES) return;
  try {
    const image = await createImageBitmap(photo);
    const scale = Math.min(1, PHOTO_SIDE / Math.max(image.width, image.height));
    const canvas = document.createElement('canvas');
    canvas.width = Math.round(image.width * scale);
    canvas.height = Math.round(image.height * scale);
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise(done => canvas.toBlob(done, 'image/jpeg', 0.8));
    if (blob && blob.size < photo.size) data.set('photo', blob, 'receipt.jpg');
  } catch {
    // it is sent as it is
  }
}

async function send(form) {
  const data = new FormData(form);
  const multipart = form.enctype === 'multipart/form-data';
  if (multipart) await smaller(data);
  ++number;
  const answer = await fetch(form.action, {
    method: 'POST',
    headers: {Accept: 'text/html'},
    body: multipart ? data : new URLSearchParams(data),
  });
  const text = await answer.text(), page = parsed(text);
  ++number;
  if (!answer.ok) {
    const said = page.querySelector('#error .error');
    showError(said ? said.textContent : 'That did not work (' + answer.status + ').', form);
    if (said) swap(page);
    return false;
  }
  if (new URL(answer.url).pathname !== location.pathname) {
    location.assign(answer.url);
    return true;
  }
  showError('');
  swap(page);
  return true;
}

// A tick shows at once.
function press(form) {
  const button = form.querySelector('[aria-pressed]');
  if (!button) return () => {};
  const was = button.getAttribute('aria-pressed');
  button.setAttribute('aria-pressed', was === 'true' ? 'false' : 'true');
  return () => button.setAttribute('aria-pressed', was);
}

function finished(form) {
  form.reset();
  const field = form.closest('.quick') && form.querySelector('input:not([type=hidden])');
  if (field) {
    field.value = '';
    field.focus();
  }
  const around = form.closest('details');
  if (around) {
    around.open = false;
    around.querySelector('summary').focus();
  }
}

addEventListener('submit', async event => {
  const form = event.target;
  if (form.method !== 'post') return;
  event.preventDefault();
  if (form.ariaBusy === 'true') return;
  form.ariaBusy = 'true';
  const back = press(form);
  try {
    if (!await send(form)) back();
    else if (!form.closest('#live')) finished(form);
  } catch {
    back();
    showError('Not saved: there is no connection. Try again.', form);
  } finally {
    form.ariaBusy = 'false';
  }
});

// ---- what others change ----

let source = null, alarm = 0, again = 0;

function online() {
  clearTimeout(alarm);
  alarm = 0;
  showOffline('');
}

function lost() {
  if (!alarm) alarm = setTimeout(() => showOffline(WORDS_OFFLINE), OFFLINE_AFTER_MS);
}

function connect() {
  clearTimeout(again);
  if (source || document.hidden || !byId('live')) return;
  source = new EventSource(app + '_changes?since=now');
  source.onopen = () => {
    online();
    refresh().then(() => { document.body.dataset.live = 'yes'; }, () => {}); // what came meanwhile
  };
  source.onmessage = refreshQuietly;
  source.onerror = () => {
    lost();
    if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
    disconnect();
    again = setTimeout(connect, RETRY_MS);
  };
}

function disconnect() {
  if (source) source.close();
  source = null;
}

// A page that nobody looks at does not listen.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    disconnect();
    online();
  } else {
    connect();
  }
});
addEventListener('offline', () => showOffline(WORDS_OFFLINE));
addEventListener('online', () => {
  disconnect();
  connect();
});
addEventListener('pagehide', disconnect);
addEventListener('pageshow', connect);
connect();
